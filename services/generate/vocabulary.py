"""Word lists of the languages our documents are written in. Accents are folded away."""


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that carry no subject. Question words are among them: what kind of answer they ask for is
# read elsewhere.
LANGUAGES = {
    "en": _listed("""
        a about after all also am amount an and any are as ask asked asking at be because been
        before being between both but by can could did do does done doing during each far for from
        get gets getting give given go goes had happen happened happens has have having he her here
        him his how i if in into is it its just kind late let long look looks many may me mean
        meaning means might more most much must my near need needs no nor not of off often on once
        one only or other our ours out over own per please possible same shall she should so some
        somebody someone something soon sort such tell than that the their them then there these
        they thing this those through to too type under until up upon us use used uses using very
        was way we were what when where whether which while who whom whose why will with within
        without would yes yet you your yours
    """),
    "de": _listed("""
        als am an auch auf aus bei beim bin bis bist da damit dann das dass dein dem den denn der
        des dich die dies diese diesem diesen dieser dieses dir doch du durch ein eine einem einen
        einer eines er es etwas fur geht gegen gibt habe haben hat hatte ich ihm ihn ihr ihre im
        in ins ist ja jede jeder jedes jemand jemanden kann kein keine konnen kommt lange macht man
        mehr mein meine mich mir mit muss mussen nach nicht noch nur ob oder oft ohne passiert sehr
        sein seine sich sie sind so soll sollen uber um und uns unser unter viel viele vom von vor
        wann war warum was weil weit welche welchem welchen welcher welches wem wen wenn wer werde
        werden wie wieso wieviel wird wir wo wurde wurden zu zum zur zwischen
    """),
    "pt": _listed("""
        acontece ao aos apos as ate cada com como da das de dela dele deles depois do dos durante e
        ela elas ele eles em entre era essa esse esta estao este eu faco fazer foi for foram ha
        isso isto ja la lhe mais mas me mesmo meu minha muito na nao nas nem no nos num numa o onde
        os ou para pela pelas pelo pelos pode podem por porque posso qual quais quando quanta
        quantas quanto quantos que quem sao se sem ser seu seus significa sobre sua suas tambem tao
        tem tempo tenho ter teve toda todas todo todos um uma umas uns vai vou
    """),
    "es": _listed("""
        al algo antes asi aun aunque cada como con cual cuales cuando cuanta cuantas cuanto
        cuantos de debe deben del desde despues donde durante el ella ellas ellos en entre era
        es esa ese eso esta estan estas este esto estos fue fueron ha hacer hacia han hasta hay la
        las le les lo los mas me mi mis mismo mucho muy ni o otra otro para pero por porque puede
        pueden pues que quien se sea segun ser si sido sin sobre son su sus tambien tanto tener
        tiene tienen toda todas todo todos tras tu un una unas uno unos usted ya yo
    """),
    "fr": _listed("""
        alors apres au aussi autre aux avant avec avoir c ce cela ces cet cette ceux chaque chez
        comme comment d dans de depuis des deux doit doivent donc du elle elles en encore entre
        est et etait etant etc ete etre eux faire fait fois il ils j je jusqu l la le les leur
        leurs lors lui ma mais meme mes moins mon n ne nos notre nous on ont ou par parce pendant
        peu peut peuvent plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa
        sans se sera ses si son sont sous sur ta te tes tous tout toute toutes tres trop tu un une
        vers vos votre vous y
    """),
}  # fmt: skip
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
