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
}  # fmt: skip
STOP_WORDS = frozenset[str]().union(*LANGUAGES.values())

# Words that turn a sentence around: one that has them says something else than one that has not.
NEGATIONS = _listed(
    """
    no not never none nor nobody nothing neither without cannot except unless
    nicht nie niemals kein keine keinen keiner niemand nichts ohne ausser
    nao nunca jamais nem ninguem nada sem exceto salvo
    """
)

# Small numbers, so that "two reviewers" and "2 reviewers" say the same. What is also an article
# stays a word.
NUMBERS = {
    word: str(number)
    for number, listed in enumerate(
        (
            "two zwei dois duas", "three drei tres", "four vier quatro", "five funf cinco",
            "six sechs seis", "seven sieben sete", "eight acht oito", "nine neun nove",
            "ten zehn dez", "eleven elf onze", "twelve zwolf doze",
        ),
        start=2,
    )
    for word in listed.split()
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
