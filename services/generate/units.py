"""The units that numbers are told in, and what numbers are called, in the languages we read.

Everything is folded: lower case, no accents.
"""

from decimal import Decimal

PERCENT, CLOCK = "%", "clock"
# Without these a number is another number.
SHARES = frozenset({PERCENT, "euro", "dollar", "pound", "franc", "yen", "yuan"})


def _named(listed: dict[str, tuple[str, str]]) -> dict[str, tuple[str, Decimal]]:
    return {
        name: (base, Decimal(factor))
        for names, (base, factor) in listed.items()
        for name in names.split()
    }


# Base unit and factor of every name.
UNITS = _named({
    "ns nanosecond nanoseconds nanosekunden": ("s", "0.000000001"),
    "us microsecond microseconds mikrosekunden": ("s", "0.000001"),
    "ms msec millisecond milliseconds millisekunde millisekunden milissegundos milisegundos"
    " millisecondes ミリ秒 毫秒": ("s", "0.001"),
    "s sec secs second seconds sek sekunde sekunden seg segundo segundos seconde secondes"
    " 秒 秒間 秒钟": ("s", "1"),
    "min mins minute minutes minuten minuto minutos 分 分間 分钟": ("s", "60"),
    "h hr hrs hour hours std stunde stunden hora horas heure heures 時間 小时": ("s", "3600"),
    "d day days tag tage tagen tages werktag werktage werktagen arbeitstag arbeitstage"
    " arbeitstagen dia dias jour jours 日 日間 天": ("s", "86400"),
    "week weeks woche wochen semana semanas semaine semaines 週間 周": ("s", "604800"),
    "month months monat monate monaten mes meses mois か月 ヶ月 个月": ("month", "1"),
    "year years jahr jahre jahren ano anos an ans annee annees 年 年間": ("month", "12"),
    "bit bits": ("bit", "1"),
    "byte bytes octet octets": ("byte", "1"),
    "kb kilobyte kilobytes ko": ("byte", "1000"),
    "mb megabyte megabytes mo megaoctets": ("byte", "1000000"),
    "gb gigabyte gigabytes go gigaoctets": ("byte", "1000000000"),
    "tb terabyte terabytes to": ("byte", "1000000000000"),
    "kib": ("byte", "1024"),
    "mib": ("byte", "1048576"),
    "gib": ("byte", "1073741824"),
    "tib": ("byte", "1099511627776"),
    "mm millimetre millimetres millimeter millimeters milimetros": ("m", "0.001"),
    "cm centimetre centimetres centimeter centimeters zentimeter centimetros": ("m", "0.01"),
    "m metre metres meter meters metern metro metros": ("m", "1"),
    "km kilometre kilometres kilometer kilometers kilometern quilometro quilometros kilometro"
    " kilometros キロメートル 公里": ("m", "1000"),
    "mile miles meile meilen milha milhas milla millas": ("mile", "1"),
    "mg milligram milligrams milligramm miligramas milligrammes": ("g", "0.001"),
    "g gram grams gramm grama gramas gramo gramos gramme grammes クラム 克": ("g", "1"),
    "kg kilo kilos kilogram kilograms kilogramm quilograma quilogramas quilo quilos kilogramo"
    " kilogramos kilogramme kilogrammes キロクラム 公斤 千克": ("g", "1000"),
    "tonne tonnes ton tons tonnen tonelada toneladas": ("g", "1000000"),
    "l litre litres liter liters litern litro litros": ("l", "1"),
    "knot knots knoten nos nudo nudos noeud noeuds": ("knot", "1"),
    "degree degrees grad grau graus grado grados degre degres": ("degree", "1"),
    "hz hertz": ("hz", "1"),
    "khz": ("hz", "1000"),
    "mhz": ("hz", "1000000"),
    "w watt watts": ("w", "1"),
    "kw kilowatt kilowatts quilowatts": ("w", "1000"),
    "% percent prozent pct ハーセント": (PERCENT, "1"),
    "€ euro euros eur": ("euro", "1"),
    "cent cents centimo centimos centime centimes": ("euro", "0.01"),
    "$ dollar dollars usd dolar dolares": ("dollar", "1"),
    "£ pound pounds gbp pfund libra libras": ("pound", "1"),
    "chf franken francs francos": ("franc", "1"),
    "円 yen jpy": ("yen", "1"),
    "元 yuan cny": ("yuan", "1"),
})  # fmt: skip
# A letter alone is a unit only right after digits; so are words that mean something else too.
AFTER_DIGITS = frozenset({*"shdmglw", "us", "mo", "go", "to", "an", "nos"})
# What may stand before its number.
SIGNS = frozenset({"€", "$", "£", "eur", "usd", "gbp"})
# "Per cent" and the like, as one sign.
TWO_WORDS = ("per cent", "por cento", "por ciento", "pour cent")

_TENS = {
    20: "twenty zwanzig vinte veinte vingt",
    30: "thirty dreissig trinta treinta trente",
    40: "forty vierzig quarenta cuarenta quarante",
    50: "fifty funfzig cinquenta cincuenta cinquante",
    60: "sixty sechzig sessenta sesenta soixante",
    70: "seventy siebzig setenta",
    80: "eighty achtzig oitenta ochenta",
    90: "ninety neunzig noventa",
}
_SMALL = {
    2: "two zwei dois duas deux twice zweimal",
    3: "three drei tres trois thrice dreimal",
    4: "four vier quatro cuatro quatre viermal",
    5: "five funf cinco cinq",
    6: "six sechs seis",
    7: "seven sieben sete siete sept",
    8: "eight acht oito ocho huit",
    9: "nine neun nove nueve neuf",
    10: "ten zehn dez diez dix",
    11: "eleven elf onze",
    12: "twelve zwolf doze doce douze",
    13: "thirteen dreizehn treze trece treize",
    14: "fourteen vierzehn catorze quatorze",
    15: "fifteen funfzehn quinze quince",
    16: "sixteen sechzehn dezasseis dezesseis dieciseis seize",
    17: "seventeen siebzehn dezassete dezessete diecisiete",
    18: "eighteen achtzehn dezoito dieciocho",
    19: "nineteen neunzehn dezanove dezenove diecinueve",
}
_LARGE = {
    100: "hundred hundert cem cento cien ciento",
    1_000: "thousand tausend mil mille",
    1_000_000: "million millionen milhao milhoes millon millones millions",
}
_GERMAN_UNITS = ("ein", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun")

NUMBER_WORDS = {
    word: number
    for listed in (_SMALL, _TENS, _LARGE)
    for number, words in listed.items()
    for word in words.split()
} | {
    f"{unit}und{_TENS[ten].split()[1]}": ten + number
    for ten in _TENS
    for number, unit in enumerate(_GERMAN_UNITS, start=1)
}
# Words that are numbers in one language only.
NUMBERS_IN = {"es": {"dos": 2, "once": 11}, "fr": {"cent": 100}}
# What is one, or only an article.
ONES = frozenset({
    "ein", "eine", "einen", "einem", "einer", "um", "uma", "un", "una", "uno", "une", "a", "an",
})  # fmt: skip
HALVES = frozenset({"half", "halb", "halbe", "halben", "meia", "meio", "media", "medio", "demi"})
NOON = frozenset({"noon", "midday", "mittags", "mediodia", "midi"})
MIDNIGHT = frozenset({"midnight", "mitternacht", "medianoche", "minuit"})
# Between two numbers that share the unit of the second.
BETWEEN = frozenset({
    "to", "or", "and", "bis", "oder", "und", "a", "ou", "e", "y", "o", "et", "-", "\u2013",
    "\u2014",
})  # fmt: skip
KANJI = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {
    "两": 2,
    "\u3007": 0,
}
KANJI_TENS = {"十": 10, "百": 100, "千": 1_000}
