"""Names in a value, and whether a document has them: capitalised words, codes, titles, Chinese names.

There is no dictionary: a word is a name by its capital letter and its place in the sentence, a Chinese name
by its quotation marks, by a surname or by the word for a place or body that ends it. So what is reported as
missing is a name that the document has in no case, inflection or abbreviation that can be recognised.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from mrag_cli.parts.terms import STOP_WORDS, terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_FOLDED_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_CJK_RUN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_QUOTED = re.compile("[《「『〈“]([^《》「」『』〈〉“”\n]{1,40})[》」』〉”]")
_JOINED = re.compile(r"[\s\-‐-–./&’']{0,3}")
# Combining accents, and the letter-like marks of transcriptions.
_ACCENTS = re.compile("[\u0300-\u036f\u02bb\u02bc\u02be\u02bf]")
_ACRONYM = re.compile(r"\b[A-Z](?:\.?[A-Z]){1,6}\b")
_CAPITALISED = re.compile(r"\b[a-z0-9]*[A-Z][A-Za-z0-9]*(?:'[A-Za-z0-9]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_CAPITAL_RUN = re.compile(r"[A-Z][\w'’]*(?:(?:[\s-]+(?:of|the|and|for|in|on|de)){0,2}[\s-]+[A-Z][\w'’]*)+")
_OPENING = re.compile(r"(?:^|[.!?:;\n])[\s\"'“‘(\[*#-]*$")
# What opens a sentence with these endings is an ordinary word: "Founded in …", "Researchers found …".
_ORDINARY = re.compile(r"(?:ed|ing|ly|[eo]rs|ists|tion|ment|ness)$")
# Words that open sentences in summaries, or stand capitalised in them, without naming anything.
_NO_NAMES = STOP_WORDS | frozenset(
    "about above according across additionally after afterwards again against ago all along "
    "already also although always am among an another any anyone anything around aside away back "
    "based because before behind being below beside besides between beyond born both briefly "
    "beginning called compared considered consisting contrary conversely currently despite "
    "during each earlier early either elsewhere especially even eventually ever every everyone "
    "everything except famous few finally first firstly following former formerly founded four "
    "further furthermore generally given having hence here however i'm including indeed "
    "initially instead just known last late later least less like likewise located made mainly "
    "many may me meanwhile more moreover most mostly much my named near nearly neither never "
    "nevertheless next no nobody none nor not nothing notable notably now once one only "
    "originally other others otherwise our out over overall own part particularly per perhaps "
    "previously prior published rather recently released said same second secondly set several "
    "shortly similarly since six some someone sometimes soon starring still subsequently such "
    "ten than thanks third those though three through throughout thus together too toward "
    "towards two typically under unlike until unless up upon us used using usually various "
    "versus very via we well whatever whenever whereas wherever whether while within without "
    "written yes yet your mr mrs ms dr prof sir lady lord st jr sr no vol ed eds pp fig al".split()
)
# Nationalities whose adjective does not begin as the country's name does.
_DEMONYMS = dict(
    pair.split(":")
    for pair in (
        "french:france dutch:netherlands british:britain english:england spanish:spain welsh:wales "
        "swiss:switzerland danish:denmark greek:greece irish:ireland scottish:scotland polish:poland "
        "turkish:turkey swedish:sweden finnish:finland thai:thailand roman:rome norwegian:norway "
        "belgian:belgium argentine:argentina filipino:philippines peruvian:peru german:germany "
        "portuguese:portugal welshman:wales frenchman:france czech:czechoslovakia ukrainian:ukraine "
        "uruguayan:uruguay kiwi:zealand scots:scotland croat:croatia serb:serbia slovak:slovakia "
        "slovene:slovenia uzbek:uzbekistan kazakh:kazakhstan afghan:afghanistan american:america "
        "american:us american:usa british:uk chinese:china cypriot:cyprus"
    ).split()
)
_ENDINGS = (
    "ians",
    "ian",
    "ans",
    "an",
    "ese",
    "ish",
    "ists",
    "ist",
    "ism",
    "ic",
    "is",
    "i",
    "ia",
    "y",
    "a",
    "e",
    "o",
    "n",
    "ns",
    "s",
    "es",
)
_LEAST_ROOT = 4
_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔汤葛"
    "柯欧洪温庄殷施牛翁骆章耿聂焦"
)
_NO_PERSONS = frozenset(
    "陆续 付款 付费 付出 付给 付清 付逾 高度 高等 高级 高速 高中 高考 高新 高效 高达 高于 高校 "
    "高低 高质 高温 方面 方法 方式 方向 方案 方便 于是 于此 任务 任何 任命 任职 任期 任教 万元 "
    "金额 金融 金钱 白色 白天 马上 夏天 夏季 石油 余下 余额 程序 程度 钱款 严重 严格 武器 许多 "
    "许可 何时 何种 常常 周期 周围 周边 周年 江水 汤药 莫大 史上 史料 顾客 顾问 施工 施行 施加 "
    "施展 温度 温暖 章节 章程 洪水 庄稼 钟头 段时 段落 单位 毛利 龙头 黄色 黄金 谢意 曾经 曾任 "
    "曾在 曾被 曾获 田地 田间 林业 林地 雷达 叶片 孔子 戴上 程中 高出 高至 方可 方才 方能 任意 "
    "施以 温和".split()
)
_DOUBTFUL_SURNAMES = frozenset(word[0] for word in _NO_PERSONS)
_PLACES = frozenset(
    "北京 天津 上海 重庆 河北 山西 辽宁 吉林 江苏 浙江 安徽 福建 江西 山东 河南 湖北 湖南 广东 "
    "海南 四川 贵州 云南 陕西 甘肃 青海 台湾 广西 西藏 宁夏 新疆 香港 澳门 成都 武汉 南京 广州 "
    "深圳 杭州 西安 沈阳 大连 青岛 济南 郑州 长沙 福州 厦门 昆明 贵阳 南宁 海口 兰州 太原 合肥 "
    "南昌 苏州 无锡 宁波 温州 台北 高雄 台中 台南 美国 英国 法国 德国 日本 韩国 朝鲜 印度 越南 "
    "泰国 缅甸 蒙古 伊朗 埃及 巴西 智利 古巴 荷兰 波兰 瑞典 瑞士 挪威 丹麦 芬兰 希腊 捷克 南非 "
    "东京 大阪 京都 伦敦 巴黎 纽约".split()
)
_PLACE = re.compile(
    "[省市县區区镇乡村州岛山江河湖路街港寺庙宫社党队团院校厂局国军]|大学|学院|医院|银行|集团|公司|中学|小"
    "学|法院|酒店|机场|车站|铁路|日报|出版|乐队|公园|大厦|广场"
)
_PARTICLES = frozenset("的了是在到和与及为等也就都被把从向对有个这那该本此各某每我他她它你全多几两一外中其所")
_NO_GIVEN_NAMES = frozenset("的了是在到和与及为等也就都被把从向对有个")
_TRANSCRIPTION = frozenset(
    "阿埃艾奥巴柏拜邦鲍贝彼宾伯茨达戴丹德登蒂丁顿厄恩法范菲费芬弗盖戈哥格古汉赫亨霍基吉加贾杰卡凯坎康考科"
    "克肯库夸拉莱赖兰朗劳勒雷蕾里利莉琳卢鲁伦罗洛玛迈曼梅蒙米密莫姆穆纳娜奈内尼妮诺努欧帕潘佩彭皮普奇恰乔"
    "切琼若萨塞沙莎舍圣施史舒斯丝苏索塔泰坦汤唐特腾托瓦威维魏温沃乌伍西希锡肖谢辛休雅亚扬耶伊因尤约泽詹朱"
    "兹佐"
)
_FOREIGN = re.compile("[\u4e00-\u9fff]{2}[·•・‧][\u4e00-\u9fff]{2}")


def folded(text: str) -> str:
    """Return a text in lower case without accents, for comparing."""
    if text.isascii():
        return text.lower()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).casefold()


class Names:
    """The words of a document, to be asked for the names of a value.

    Args:
        passages: the document's units, each with its headings and the document's title, normalised.
    """

    def __init__(self, passages: Sequence[str]) -> None:
        self._passages = passages
        self._folded = [folded(passage) for passage in passages]
        self._words = frozenset(word for passage in self._folded for word in _FOLDED_WORD.findall(passage))

    @cached_property
    def _known(self) -> frozenset[str]:
        return self._words | _NO_NAMES

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(terms(" ".join(self._words)))

    @cached_property
    def _roots(self) -> frozenset[str]:
        return frozenset(root for word in self._words for root in _roots(word))

    @cached_property
    def _squeezed(self) -> str:
        return "\n".join("".join(_FOLDED_WORD.findall(passage)) for passage in self._folded)

    @cached_property
    def _initials(self) -> str:
        """The initials of each run of capitalised words, lower case, a line each."""
        runs = (run.group() for passage in self._passages for run in _CAPITAL_RUN.finditer(passage))
        return "\n".join("".join(re.findall(r"\b[A-Z]", run)).lower() for run in runs)

    @cached_property
    def _acronyms(self) -> frozenset[str]:
        found = (acronym for passage in self._passages for acronym in _ACRONYM.findall(passage))
        return frozenset(acronym.replace(".", "").lower() for acronym in found)

    @cached_property
    def _pairs(self) -> frozenset[str]:
        """The pairs of neighbouring letters or digits."""
        text = self._squeezed
        return frozenset(text[start : start + 2] for start in range(len(text) - 1))

    def missing(self, value: str) -> list[str]:
        """Return the names of a normalised value that the document does not have, in order."""
        if value.isascii() or not _CJK.search(value):
            return self._missing_words(value)
        return [*self._missing_words(_CJK_RUN.sub(" ", value)), *self._missing_cjk(value)]

    def _missing_words(self, text: str) -> list[str]:
        # Nearly always every word is there as it stands, which is quickly seen.
        if text.isascii() and self._known.issuperset(map(str.lower, _CAPITALISED.findall(text))):
            return []
        result: list[str] = []
        run: list[re.Match[str]] = []
        for match in _capitalised(text):
            if run and not _JOINED.fullmatch(text, run[-1].end(), match.start()):
                result.extend(self._missing_of_run(run, text))
                run = []
            run.append(match)
        return [*result, *self._missing_of_run(run, text)] if run else result

    def _missing_of_run(self, run: list[re.Match[str]], text: str) -> list[str]:
        """Return what is missing of a run of capitalised words, neighbours together."""
        missing = [match for match in run if not self._holds(match.group())]
        if not missing or any(len(words) > 1 and self._holds_run(words, text) for words in (run, missing)):
            return []
        if len(run) == 1 and _OPENING.search(text[: run[0].start()]) and _ORDINARY.search(run[0].group()):
            return []
        result = [missing[0].group()]
        for before, match in pairwise(missing):
            between = text[before.end() : match.start()]
            if _JOINED.fullmatch(between):
                result[-1] += between + match.group()
            else:
                result.append(match.group())
        return result

    def _holds_run(self, run: list[re.Match[str]], text: str) -> bool:
        """Tell whether the document has a run written as one word, otherwise spaced, or as an acronym."""
        if "".join(match.group()[0] for match in run).lower() in self._acronyms:
            return True
        whole = "".join(_FOLDED_WORD.findall(folded(text[run[0].start() : run[-1].end()])))
        return whole in self._squeezed

    def _holds(self, word: str) -> bool:
        plain = folded(_POSSESSIVE.sub("", word))
        if plain in self._known:
            return True
        parts = _FOLDED_WORD.findall(plain)
        if len(parts) > 1 and all(part in self._words for part in parts):
            return True
        if _DEMONYMS.get(plain) in self._words or (
            word.isupper() and len(word) > 1 and plain in self._initials
        ):
            return True
        if self._stems.issuperset(terms(plain)) or not self._roots.isdisjoint(_roots(plain)):
            return True
        # A code or a camel-case name that the document writes with a space or a hyphen: WiFi, A105.
        return not plain.isalpha() and plain in self._squeezed

    def _missing_cjk(self, value: str) -> list[str]:
        result = [name for name in _QUOTED.findall(value) if _CJK.search(name) and not self._holds_text(name)]
        for run in _CJK_RUN.finditer(value):
            result.extend(
                name for name in self._missing_of_cjk_run(run.group()) if name not in "".join(result)
            )
        for foreign in _FOREIGN.finditer(value):
            if not self._holds_text(foreign.group()):
                result.append(foreign.group())  # noqa: PERF401 - it reads better
        return result

    def _holds_text(self, text: str) -> bool:
        plain = "".join(_FOLDED_WORD.findall(folded(text)))
        return all(plain[start : start + 2] in self._pairs for start in range(len(plain) - 1))

    def _missing_of_cjk_run(self, run: str) -> Iterator[str]:
        """Yield persons, places and bodies whose characters the document never has side by side."""
        text = folded(run)
        new = [text[start : start + 2] not in self._pairs for start in range(len(text) - 1)]
        for start in (start for start, is_new in enumerate(new) if is_new):
            pair, after = text[start : start + 2], start + 1 >= len(new) or new[start + 1]
            if text[start] in _SURNAMES and (after or text[start] not in _DOUBTFUL_SURNAMES):
                if pair not in _NO_PERSONS and text[start + 1] not in _NO_GIVEN_NAMES:
                    yield text[start : start + 3]
            elif pair in _PLACES:
                yield pair
            elif start and new[start - 1] and text[start] not in _PARTICLES and _PLACE.match(text, start + 1):
                yield text[start - 1 : start + 2]
            elif text[start] in _TRANSCRIPTION and text[start + 1] in _TRANSCRIPTION and after:
                yield text[start : start + 3]


def _capitalised(text: str) -> Iterator[re.Match[str]]:
    """Yield the words that begin with a letter and have a capital one, but single letters."""
    if text.isascii():
        return (match for match in _CAPITALISED.finditer(text) if match.end() > match.start() + 1)
    return (
        match
        for match in _WORD.finditer(text)
        if len(word := match.group()) > 1 and word[0].isalpha() and word != word.lower()
    )


def _roots(word: str) -> Iterator[str]:
    """Yield a word with and without the endings that make an adjective or a people of a country's name."""
    yield word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_ROOT:
            yield word[: -len(ending)]
