"""What everything else stands on: errors, reports to the user, atomic files."""
