import pytest

from mrag_cli.parts.names import Names
from mrag_cli.parts.quantities import normalised

_ENGLISH = (
    "The Hale Lock Company was founded by Margarete O'Brien-Núñez in Italy. She studied at the University of "
    "Lyon with an IBM engineer. The US Army and the British Broadcasting Corporation, the WiFi makers, "
    "bought model A-105."
)
_CHINESE = "《江南水闸志》由王建国编写，他出生于山东省，毕业于清河大学。阿尔弗·斯库里参与了ω-Force项目。"


def _missing(value: str, *passages: str) -> list[str]:
    return Names([normalised(passage) for passage in passages]).missing(normalised(value))


@pytest.mark.parametrize(
    "value",
    [
        "HALE LOCK COMPANY and O'Brien-Nunez",
        "Italian locks; Italians",
        "The Company's founder, Margarete O’Brien-Núñez",
        "Bought by the BBC and the United States Army",
        "A Wi-Fi maker; the A105",
        "However, She Studied. Founded in Lyon. Additionally, they met.",
        "International Business Machines",
    ],
)
def test_other_spellings_are_no_alarm(value: str) -> None:
    """Case, accents, possessives, nationalities, acronyms and hyphens make no other name."""
    assert _missing(value, _ENGLISH) == []


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("It was founded by Margarete Svensson.", ["Svensson"]),
        ("Founded by Johan Berg-Lund in Lyon", ["Johan Berg-Lund"]),
        ("Svensson studied in Norway with an NHS engineer.", ["Svensson", "Norway", "NHS"]),
        ("It bought model B-200x and the B200x.", ["B200x"]),
    ],
)
def test_other_names_are_missing(value: str, names: list[str]) -> None:
    """A word of a name that the document does not have is reported, neighbours together."""
    assert _missing(value, _ENGLISH) == names


@pytest.mark.parametrize(
    "value", ["王建国写了《江南水闸志》。", "他是山东人，在清河大学学习。", "ω-Force与斯库里"]
)
def test_chinese_names_of_the_document_are_no_alarm(value: str) -> None:
    """A paraphrase that keeps the names is no alarm."""
    assert _missing(value, _CHINESE) == []


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("《北国水闸志》由王建国编写。", "北国水闸志"),
        ("由李文博编写。", "李文博"),
        ("他毕业于大理大学。", "理大"),
        ("他出生于浙江省。", "浙江"),
        ("卡门·罗德斯参与了项目。", "卡门"),
        ("由Gamma公司编写。", "Gamma"),
    ],
)
def test_other_chinese_names_are_missing(value: str, name: str) -> None:
    """Titles, persons, bodies, places, foreign and Latin names that the document lacks are reported."""
    assert any(name in found for found in _missing(value, _CHINESE))


def test_headings_and_other_units_count() -> None:
    """A name may stand in any passage."""
    assert _missing("Marsh built it for Hale.", "Hale", "built by Marsh") == []
