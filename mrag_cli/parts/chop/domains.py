"""What the words of a domain are: how its titles read, how its documents begin and end.

The lists are of the trade's own words, for any maker and any collection. Each entry is a regular expression;
``/`` stands between entries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PURPOSES = """
    user/users/user['’]?s/owner/owners/owner['’]?s/operator/operator['’]?s/instructions?/operating/
    operations?/service/
    reference/installation/installer['’]?s/assembly/maintenance/repair/workshop/programming/set-?up/quick/
    start/
    quick-?start/getting/started/safety/technical/product/use/care/warranty/hardware/software/system/
    administrators?/administration/administrator['’]?s/configuration/training/electronic/online/digital/
    complete/
    basic/advanced
"""
_PRODUCT_KINDS = """
    e-?manual/instructions?\\s+for\\s+use/(?:operating|installation|assembly|user)\\s+instructions?/
    (?:用户|使用|操作|运行|维修|安装|产品)?手册/用户指南/(?:使用)?说明书/取扱説明書/사용\\s?설명서/
    bedienungsanleitung/gebrauchsanleitung/betriebsanleitung/manuel d['’]utilisation/guide d['’]utilisation/
    mode d['’]emploi/manual del? usuario/manuale d['’]uso
"""
_LEGAL_KINDS = """
    act/code/statutes?/directive/constitution/treaty/convention/charter/ordinance/法/条例/规定/办法
"""
_LEGAL_NUMBERED_KINDS = "law/regulations?/rules/order/bill/decree/resolution"
_POLICY_KINDS = """
    policy/policies/code of (?:conduct|ethics|practice)/handbook/terms (?:of|and) (?:use|service|conditions)/
    terms & conditions/制度/政策/管理办法
"""
_POLICY_NUMBERED_KINDS = "procedures?/standards?/guidelines?/protocol/instruction/manual"
_PRODUCT_FRONT = """
    (?:table of )?contents/index of contents/(?:key |device |product |main )?features/introduction/preface/
    foreword/
    overview/welcome/getting started/get started/quick (?:start|guides?|setup)(?: guide)?/
    before (?:you )?(?:begin|beginning|start|starting|use|using|installation|first use)/
    about (?:this|the) (?:manual|guide|document|handbook|product|device|appliance)/read (?:this )?(?:me
    )?first/
    front view/product (?:overview|description|layout|introduction)/device layout/
    parts? (?:identification|list|names?|and (?:controls|accessories|functions))/names of (?:the )?parts/
    package (?:contents|checklist)/box contents/what(?:['’]?s| is) in the (?:box|package)/in the box/
    unpacking/
    (?:important )?safety (?:instructions?|information|precautions|notices?|warnings?|guidelines)/
    important safeguards/warnings? and (?:cautions?|precautions)/
    目录/前言/简介/概述/安全须知/安全注意事项/快速入门
"""
_PRODUCT_BACK = """
    legal(?: information| notices?| notes?)?/(?:limited |manufacturer['’]?s )?warranty(?: information| card|
    terms)?/
    guarantee/troubleshooting/specifications?/technical (?:data|specifications?)/copyright(?: notice)?/
    trademarks?/
    notices?/index/glossary/appendix/appendices/disposal(?: and recycling)?/recycling/
    environment(?:al protection)?/declaration of conformity/regulatory (?:information|compliance|notices?)/
    compliance/fcc (?:statement|notice|compliance)/(?:open source )?licen[sc]es?/
    customer (?:support|service|care)/after-?sales service/support/contact(?: us)?/spare parts/
    accessories and spare parts/frequently asked questions/faq/
    保修/保修条款/技术规格/规格/故障排除/版权/法律声明
"""
_LEGAL_FRONT = """
    (?:arrangement|table) of (?:sections|articles|contents)/contents/preamble/recitals?/
    preliminary(?: provisions)?/general provisions/introductory(?: provisions| text)?/short title.*/
    citation.*/
    purpose(?: and scope)?/scope(?: of application)?/subject[ -]matter.*/definitions/interpretation/
    (?:part|chapter|title|article|section) (?:1|i|one|the first)\\b.*/第一[章条].*/总则
"""
_LEGAL_BACK = """
    (?:final|transitional|supplementary|miscellaneous|closing|general and supplementary) provisions?.*/
    entry into force.*/repeals?(?: and savings)?/commencement/extent/schedules?(?: \\w+)?/
    annex(?:es)?(?: \\w+)?/
    explanatory notes?/signatures?/附则
"""
_POLICY_FRONT = """
    (?:table of )?contents/purpose(?: and scope)?/scope/introduction/overview/policy statement/objectives?/
    aims?/
    background/definitions/applicability/who this (?:policy )?applies to/about this policy/summary/
    目的/适用范围/总则
"""
_POLICY_BACK = """
    (?:revision|version|change|document) (?:history|control)/
    (?:related|associated|reference) (?:documents?|policies)/references/review(?: and (?:approval|revision))?/
    policy review/approval/enforcement/exceptions/contacts?/appendix/appendices/glossary/acknowledge?ment/附则
"""
_NUMBER = r"(?:\d+|[ivxlc]+|[a-z])(?:[.\-]\d+)*\w*"
_ARTICLE = (
    rf"((?<!\w)(?:article|section|sec\.|art\.|rule|regulation|clause)\s*{_NUMBER}|§+\s*{_NUMBER}|"
    r"第[一二三四五六七八九十百千0-9]+条)"
)
_POLICY_NUMBER = (
    r"\b([A-Z]{2,}[-–. ]?\d[\w.\-]*|(?i:policy|procedure|standard)\s+(?i:no\.?|number|"
    r"#)\s*[\w.\-]*\d[\w.\-]*)"
)


@dataclass(frozen=True, slots=True)
class Domain:
    """How the documents of a domain are told apart.

    Attributes:
        name: ``product``, ``legal`` or ``policy``.
        kind: pattern of the words that say what kind of document a title names.
        kind_belongs: the kind is part of the document's name ("Data Protection Act"), not only of its
            title ("X100 user manual"); then the name is the CNM's category, and the model is a number.
        numbered_kind: where the kind belongs, pattern of the kinds that are common words too and make a title
            only with a number or a year.
        numbered: pattern of a heading's own number, where the domain has one (an article's, a policy's).
        front: pattern of a heading that stands at a document's beginning.
        back: pattern of a heading that stands at a document's end.
    """

    name: str
    kind: re.Pattern[str]
    kind_belongs: bool
    numbered_kind: re.Pattern[str] | None
    numbered: re.Pattern[str] | None
    front: re.Pattern[str]
    back: re.Pattern[str]


def _any_of(entries: str) -> str:
    return "(?:" + "|".join(entry for entry in re.split(r"/\s*|\n\s*", entries.strip()) if entry) + ")"


def _heading(entries: str) -> re.Pattern[str]:
    """Match a heading that is one of ``entries``, with or without a number before it."""
    return re.compile(rf"(?:[\divxlc]+(?:\.\d+)*[.):]?\s+)?{_any_of(entries)}\s*[:.]?$", re.IGNORECASE)


_PURPOSE = _any_of(_PURPOSES)
_MANUAL = (
    rf"{_PURPOSE}(?:(?:\s*(?:and|&|/|,|\+)\s*|\s+){_PURPOSE})*"
    r"\s+(?:e-?)?(?:manual|guide|handbook|booklet|instructions)"
)

DOMAINS = {
    "product": Domain(
        "product",
        re.compile(rf"(?:{_MANUAL}|{_any_of(_PRODUCT_KINDS)})", re.IGNORECASE),
        False,
        None,
        None,
        _heading(_PRODUCT_FRONT),
        _heading(_PRODUCT_BACK),
    ),
    "legal": Domain(
        "legal",
        re.compile(_any_of(_LEGAL_KINDS), re.IGNORECASE),
        True,
        re.compile(_any_of(_LEGAL_NUMBERED_KINDS), re.IGNORECASE),
        re.compile(_ARTICLE, re.IGNORECASE),
        _heading(_LEGAL_FRONT),
        _heading(_LEGAL_BACK),
    ),
    "policy": Domain(
        "policy",
        re.compile(_any_of(_POLICY_KINDS), re.IGNORECASE),
        True,
        re.compile(_any_of(_POLICY_NUMBERED_KINDS), re.IGNORECASE),
        re.compile(_POLICY_NUMBER),
        _heading(_POLICY_FRONT),
        _heading(_POLICY_BACK),
    ),
}
"""The domains by name."""
