"""Word lists of the languages our documents are written in. Accents are folded away."""

from corpus.function_words import LISTS


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that carry no subject, besides the function words. Question words are among both: what kind
# of answer they ask for is read elsewhere.
_SUBJECTLESS = {
    "en": _listed("""
        amount ask asked asking done far get gets getting give given go goes happen happened
        happens him kind late let long look looks many mean meaning means much near need needs
        often once one ours per please possible same somebody someone something soon sort tell
        thing type upon us use used uses using way without yes yet yours
    """),
    "de": _listed("""
        dein dich dir etwas gegen geht gibt habe in jemand jemanden kommt lange macht man oft
        passiert so viel viele war weit werde zwischen
    """),
    "pt": _listed("""
        acontece apos as de do durante faco fazer for la mais me no significa tao tempo tenho teve
        toda todas todo todos vai vou
    """),
    "es": _listed("""
        antes aun cada como despues ella entre era esa ese eso esta estan estas este ha hacer han
        mas me mismo mucho o para por porque que quien se ser sin sobre tambien tanto toda todas
        todo todos unas
    """),
    "fr": _listed("""
        apres autre avant c comme d de des deux doit doivent en encore entre etant etc ete fait
        fois j l la le les mon n ne nos ont ou pour qu que s se si son te tres tu un y
    """),
}  # fmt: skip
# Function words that carry a subject: one statement differs from another in them.
_KEPT = {"de": _listed("aber alle"), "es": _listed("y")}
LANGUAGES = {
    name: LISTS[name] - _KEPT.get(name, frozenset()) | words for name, words in _SUBJECTLESS.items()
}
# Stop words of one language that carry a subject in another.
_SUBJECTS = frozenset({
    "comment", "fait", "fois", "hay", "plus", "pour", "sea", "sin", "son", "ton", "vers",
})  # fmt: skip
STOP_WORDS = frozenset[str]().union(*LANGUAGES.values()) - _SUBJECTS

# Words that turn a sentence around: one that has them says something else than one that has not.
NEGATIONS_IN = {
    "en": _listed("""
        no not never none nor nobody nothing neither cannot except unless forbidden
        prohibited
    """),
    "de": _listed("""
        nicht nie niemals kein keine keinen keinem keiner keines niemand nichts ausser verboten
        untersagt
    """),
    "pt": _listed("""
        nao nunca jamais nem nenhum nenhuma ninguem nada exceto salvo proibido proibida proibidos
        proibidas
    """),
    "es": _listed("""
        no nunca jamas ni ningun ninguna ninguno nadie nada excepto salvo prohibido prohibida
        prohibidos prohibidas
    """),
    "fr": _listed("""
        ne n pas jamais ni aucun aucune rien sauf interdit interdite interdits interdites
    """),
}  # fmt: skip
# These turn around what they stand before, and with a negation nothing.
LACKS = _listed("without ohne sem sin sans")
# "No" is also Portuguese for "in the".
NEGATIONS = frozenset[str]().union(LACKS, *NEGATIONS_IN.values())
# Scripts without spaces negate inside words.
NEGATED_WITHIN = (
    "ない",
    "ません",
    "なかった",
    "ずに",
    "禁止",
    "不",
    "没",
    "無",
    "无",
    "未",
    "勿",
    "别",
)

# The days and the months, as far as no other word is spelled alike: one word in all languages.
_DATES = {
    "day": (
        "monday mondays montag montags lundi lunes",
        "tuesday tuesdays dienstag dienstags mardi martes",
        "wednesday wednesdays mittwoch mittwochs mercredi miercoles",
        "thursday thursdays donnerstag donnerstags jeudi jueves",
        "friday fridays freitag freitags vendredi viernes",
        "saturday saturdays samstag samstags sonnabend sabado sabados samedi",
        "sunday sundays sonntag sonntags domingo domingos dimanche",
    ),
    "month": (
        "january januar janeiro enero janvier",
        "february februar fevereiro febrero fevrier",
        "marz marco marzo mars",
        "april abril avril",
        "maio mayo",
        "june juni junho junio juin",
        "july juli julho julio juillet",
        "august agosto aout",
        "september setembro septiembre septembre",
        "october oktober outubro octubre octobre",
        "november novembro noviembre novembre",
        "december dezember dezembro diciembre decembre",
    ),
}
DATES = {
    word: kind + letter
    for kind, listed in _DATES.items()
    for letter, words in zip("abcdefghijkl", listed, strict=False)
    for word in words.split()
}
# Portuguese counts its days; the words alone only count.
COUNTED_DAYS = {
    name: DATES[day]
    for name, day in (
        ("segunda", "lunes"), ("terca", "martes"), ("quarta", "miercoles"), ("quinta", "jueves"),
        ("sexta", "viernes"),
    )
}  # fmt: skip

# Irregular forms that a shared beginning does not show.
BASE_FORMS = {
    form: base
    for base, *forms in map(
        str.split,
        (
            "keep kept", "pay paid", "send sent", "hold held", "tell told", "lose lost",
            "sell sold", "buy bought", "write wrote written", "begin began begun",
            "break broke broken", "choose chose chosen", "take took taken", "know knew known",
            "see saw seen", "find found", "leave left", "lead led", "meet met", "run ran",
            "spend spent", "speak spoke spoken", "grow grew grown", "build built",
            "bring brought", "throw threw thrown", "wake woke woken", "teach taught",
            "drive drove driven", "fall fell fallen", "rise rose risen", "steal stole stolen",
        ),
    )
    for form in forms
}  # fmt: skip

# Endings of inflected and derived words, the longest that leaves enough is taken off.
ENDINGS = sorted(
    _listed("""
    ations ation ating ated ates ings ing edly ed es s ly ment ments ness ions ion ers er
    ungen ung ens en em e ern lich
    coes cao amento amentos adas ados ada ado as os a o ar ir am
    """),
    key=len,
    reverse=True,
)  # fmt: skip
