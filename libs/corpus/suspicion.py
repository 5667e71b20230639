"""Does a text address the model instead of the reader? One layer among several, not a proof.

Phrases are matched on folded words, so that case, accents, emphasis, line breaks, full-width
letters, invisible characters and hidden tag characters make no difference. Every phrase needs
an order and its object together: "ignore the alert" or "follow the instructions above" is what
runbooks say.
"""

import re
import unicodedata

# In the patterns an underscore stands between two words and white space means nothing.
_WORD = r"(?:[a-z0-9]+_)"
_SOMEBODY = r"""(?:
    ai|ia|ki|llm|chatbot|bot|language_model|sprachmodell|modele_de_langage
    |modelo_de_linguagem|modelo_de_lenguaje
    |(?:ai_|ia_|ki_|virtual_|virtuel_)?(?:assistant|assistent|assistente|asistente)
)"""

_EN_FORGET = r"(?:ignore|disregard|forget|override|bypass|overrule|discard|not_follow|not_obey)_"
_EN_FILLER = r"(?:(?:all|any|every|each|of|the|these|those|your|my|our|its|other|and|or)_)*"
_EN_EARLIER = r"(?:previous|prior|earlier|preceding|above|foregoing|existing|original|system)_"
_EN_ORDERS = r"(?:instructions?|prompts?|directives?|guidelines|rules|orders|commands)_"

_PT_FORGET = r"""(?:
    ignor(?:e|a|em|ar)|desconsider(?:e|a|em|ar)|esque(?:ca|ce|cam|cer)|desobedec(?:a|am)
    |desobedece|nao_siga|nao_obedeca
)_"""
_PT_FILLER = r"(?:(?:todas?|as?|os?|[st]uas?|essas|estas|quaisquer|outras)_)*"
_PT_EARLIER = r"(?:anterior(?:es)?|previas?|acima|precedentes|do_sistema|originais)_"
_PT_ORDERS = r"(?:instruc(?:ao|oes)|ordens|regras|diretrizes|orientacoes|prompts?|comandos)_"

_DE_FORGET = r"""(?:
    ignorier(?:e|en|t|st)?|missacht(?:e|en|et)|vergiss|vergesst|vergessen|umgehe
    |befolge_(?:nicht|keine)
)_"""
_DE_FILLER = r"(?:(?:sie|bitte|alle|samtliche|die|deine|ihre|diese|jede|all)_)*"
_DE_EARLIER = r"""(?:
    vorherig|bisherig|obig|vorig|fruher|vorangegangen|vorstehend|vorangehend|ursprunglich
)en?_"""
_DE_ORDERS = r"""(?:
    anweisung(?:en)?|instruktion(?:en)?|vorgaben?|befehle?|regeln|direktiven
    |prompts?|systemanweisung(?:en)?|systemprompts?
)_"""

_ES_FORGET = r"""(?:
    ignor(?:a|e|ad|en|ar)|olvid(?:a|e|ad|en|ar)|descart(?:a|e|ad|en)
    |ha(?:z|ga)_caso_omiso_de|no_(?:sigas?|obedezcas?)
)_"""
_ES_FILLER = r"(?:(?:todas?|las?|los|[ts]us?|estas|esas|cualquier|otras)_)*"
_ES_EARLIER = r"(?:anterior(?:es)?|previas?|de_arriba|precedentes|del_sistema|originales)_"
_ES_ORDERS = r"(?:instruccion(?:es)?|ordenes|reglas|directrices|indicaciones|prompts?)_"

_FR_FORGET = r"""(?:
    ignore[rz]?|oublie[rz]?|neglige[rz]?|ne_(?:suis|suivez)_pas
    |ne_(?:tiens|tenez)_(?:pas|aucun)_compte_d(?:es?|u)
)_"""
_FR_FILLER = r"(?:(?:toutes?|tous|les?|la|tes|vos|ces|des|autres)_)*"
_FR_EARLIER = r"(?:precedente?s?|anterieure?s?|ci_dessus|du_systeme|initiales?)_"
_FR_ORDERS = r"(?:instructions?|consignes?|directives?|regles|ordres|prompts?)_"

# The words of which each phrase needs one, and the phrases. Looking words up is many times cheaper
# than searching, and most texts hold none of them.
_GROUPS = {
    """
        ignore disregard forget override bypass overrule discard follow obey
    """: rf"""
        {_EN_FORGET} {_EN_FILLER} {_EN_EARLIER} {_WORD}? {_EN_ORDERS}
        |{_EN_FORGET} {_EN_FILLER} {_EN_ORDERS}
            (?:above|before_this|given_(?:above|before|earlier)
            |(?:that_)?you_(?:were|have_been|got|received))_
        |{_EN_FORGET} (?:all_)?(?:of_)?your_ {_WORD}? {_EN_ORDERS}
        |{_EN_FORGET} (?:everything|anything|all)_
            (?:above|before_this|(?:that_)?you_(?:were|have_been)_told)_
    """,
    """
        now pretend ignore disregard obey mention say answer recommend reply telling tell inform
    """: rf"""
        from_now_on_you_(?:are|must|will|shall|should)_(?:only_|always_)?
            (?:an?|act|answer|respond|reply|obey|behave|ignore|pretend|speak|say)_
        |you_are_now_(?:in_)?(?:an?_|the_)? {_WORD}?
            (?:{_SOMEBODY}|developer_mode|jailbroken|unrestricted|dan)_
        |pretend_(?:that_)?you_(?:are|have_no|were)_ {_WORD}{{0,3}}
            (?:ai|assistant|rules|restrictions|guidelines|instructions)_
        |{_SOMEBODY}s?_(?:must|shall|should)_
            (?:ignore|disregard|obey|pretend|not_mention|always_(?:say|answer|recommend|reply))_
        |(?:without_telling|not_tell|not_inform|never_tell|never_inform)_the_user_
            (?:about|that|of)_(?:this|these|the)_(?:instructions?|prompt|order|message|note)_
    """,
    """
        attention dear hey hello note instructions
    """: rf"""
        (?:attention|note_to|dear|hey|hello|instructions_for|instructions_to)_
            (?:the_|all_|any_)? {_SOMEBODY}s?_
            (?:reading|processing|summari[sz]ing|answering|when|you|please|do|must|ignore|that)_
    """,
    """
        prompt systemprompt instructions instrucciones instrucoes
    """: rf"""
        (?:reveal|print|show|repeat|output|display|leak|disclose|send|tell)_ {_WORD}{{0,2}}
            (?:your|the)_ {_WORD}? (?:system|hidden|secret|initial|original)_prompt_
        |(?:reveal|print|repeat|output|leak|disclose)_(?:all_)?(?:of_)?your_ {_WORD}? instructions_
        |(?:revele|revela|mostre|mostra|imprima|exiba|repita|diga)_ {_WORD}{{0,2}}
            (?:prompt_d[oe]_sistema|[st]uas_instrucoes)_
        |(?:muestra|muestrame|revela|revelame|imprime|repite|dime)_ {_WORD}{{0,2}}
            (?:prompt_del?_sistema|tus_instrucciones)_
        |(?:revele|affiche|montre|repete|donne)[rz]?_ {_WORD}{{0,2}} prompt_(?:du_)?systeme_
        |(?:zeige?|verrate?|nenne|gib|wiederhole|drucke)_ {_WORD}{{0,2}}
            (?:deinen?|den)_system_?prompt_
    """,
    """
        ignore ignora ignorem ignorar desconsidere desconsidera desconsiderem desconsiderar
        esqueca esquece esquecam esquecer desobedeca desobedece siga obedeca
    """: rf"""
        {_PT_FORGET} {_PT_FILLER} {_PT_ORDERS} {_WORD}? {_PT_EARLIER}
        |{_PT_FORGET} {_PT_FILLER} {_PT_EARLIER} {_PT_ORDERS}
        |{_PT_FORGET} (?:todas_)?(?:as_)?[st]uas_ {_PT_ORDERS}
        |{_PT_FORGET} tudo_o_que_
            (?:foi_dito|esta_acima|voce_sabe|voce_leu|veio_antes|te_disseram)_
    """,
    """
        agora ahora maintenant desormais
    """: rf"""
        a_partir_de_agora_(?:voce|vc|tu)_(?:e|es|deves?|sera|vai|age|responde)_
        |(?:voce_e_agora|agora_voce_e|tu_es_agora)_(?:uma?_)? {_WORD}? {_SOMEBODY}_
        |a_partir_de_ahora_(?:eres|debes|seras|actuas?|responde|vas_a)_
        |ahora_eres_(?:una?_)? {_WORD}? {_SOMEBODY}_
        |(?:a_partir_de|des)_maintenant_
            (?:tu_(?:es|dois|vas|agis|reponds)|vous_(?:etes_une?|devez|agissez|repondez))_
        |(?:tu_es|vous_etes)_(?:maintenant|desormais)_(?:une?_)? {_WORD}? {_SOMEBODY}_
    """,
    """
        ignorier ignoriere ignorieren ignoriert ignorierst missachte missachten missachtet
        vergiss vergesst vergessen befolge umgehe
    """: rf"""
        {_DE_FORGET} {_DE_FILLER} {_DE_EARLIER} {_WORD}? {_DE_ORDERS}
        |{_DE_FORGET} {_DE_FILLER} {_DE_ORDERS}
            (?:(?:von_)?oben|zuvor|davor|bisher|des_systems|die_du)_
        |{_DE_FORGET} {_DE_FILLER} deine_ {_DE_ORDERS}
        |{_DE_FORGET} (?:sie_|bitte_)*
            alles_(?:oben|obige|bisherige|vorherige|zuvor|was_(?:oben|zuvor|bisher))_
    """,
    """
        jetzt sofort nun
    """: rf"""
        (?:ab_jetzt|ab_sofort|von_nun_an)_(?:bist|antwortest|musst|sollst|wirst)_du_
        |du_bist_(?:jetzt|nun|ab_jetzt|ab_sofort)_(?:eine?_|der_|die_|das_|mein_)?
            {_WORD}? {_SOMEBODY}_
    """,
    """
        ignora ignore ignorad ignoren ignorar olvida olvide olvidad olviden olvidar descarta
        descarte descartad descarten omiso siga sigas obedezca obedezcas
    """: rf"""
        {_ES_FORGET} {_ES_FILLER} {_ES_ORDERS} {_WORD}? {_ES_EARLIER}
        |{_ES_FORGET} {_ES_FILLER} {_ES_EARLIER} {_ES_ORDERS}
        |{_ES_FORGET} (?:todas_)?[ts]us_ {_ES_ORDERS}
        |{_ES_FORGET} todo_lo_
            (?:anterior|dicho|que_(?:esta_arriba|te_han_dicho|te_dijeron|sabes))_
    """,
    """
        ignore ignorer ignorez oublie oublier oubliez neglige negliger negligez compte suis suivez
    """: rf"""
        {_FR_FORGET} {_FR_FILLER} {_FR_ORDERS} {_WORD}? {_FR_EARLIER}
        |{_FR_FORGET} (?:toutes_)?(?:tes|vos)_ {_FR_ORDERS}
        |{_FR_FORGET} tout_ce_qui_(?:precede|est_(?:ecrit_)?(?:ci|au)_dessus)_
    """,
}  # fmt: skip
_PHRASES = [re.compile(f"_(?:{pattern})", re.VERBOSE) for pattern in _GROUPS.values()]
_TRIGGERS = {
    word: [phrase for words, phrase in zip(_GROUPS, _PHRASES, strict=True) if word in words.split()]
    for word in " ".join(_GROUPS).split()
}

# Tokens of chat templates, and the frame of our own messages and answers.
_MARKER = re.compile(
    r"""
    <\|[a-z][\w?]{1,40}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>
    |"evidence"\s*:\s*\[\s*\{|"source_ids"\s*:\s*\[|\{\s*"label"\s*:\s*"s\d+"
    """,
    re.VERBOSE,
)

# A key such as `system: linux` is ordinary YAML; a role that speaks to somebody, or two roles
# that talk to each other, is not.
_ROLE_LINE = re.compile(
    r"""
    ^[\s>\#*_-]* (system|assistant|developer|human|user) (?:[ ](?:message|prompt))? [*_]*
    \s*:[*_]* (.*)$
    """,
    re.VERBOSE | re.MULTILINE,
)
_SPEECH = re.compile(
    r"""
    \b(?:you|your|ignore|answer|respond|reply|voce|responda|ignora|du|deine|ignoriere|antworte
    |tu|eres|responde|vous|reponds|repondez)\b
    """,
    re.VERBOSE,
)
_SPEAKERS = {"system", "assistant", "developer"}

# Tag characters are invisible copies of ASCII: what they spell is read, not skipped.
_TAGS = {code: chr(code - 0xE0000) for code in range(0xE0020, 0xE007F)}
_INVISIBLE = re.compile("[\u0300-\u036f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")
_SPACED = {code: " " for code in range(128) if not chr(code).isalnum()}


def suspected_injection(text: str) -> bool:
    """Whether the text resembles instructions to a model (en, pt, de, es, fr).

    Role markers of chat templates and the delimiters of our own messages count as well. Time is
    linear in the length of the text.
    """
    folded = _folded(text)
    return bool(_MARKER.search(folded)) or _holds_role(folded) or _holds_phrase(folded)


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.translate(_TAGS)).casefold()
    return _INVISIBLE.sub("", decomposed).encode("ascii", "replace").decode()


def _holds_role(folded: str) -> bool:
    if "system" not in folded and "assistant" not in folded and "developer" not in folded:
        return False
    lines = _ROLE_LINE.findall(folded)
    roles = {role for role, _ in lines}
    speaks = any(role in _SPEAKERS and _SPEECH.search(said) for role, said in lines)
    return speaks or ("assistant" in roles and bool(roles & {"user", "human", "system"}))


def _holds_phrase(folded: str) -> bool:
    words = folded.translate(_SPACED).split()
    if _TRIGGERS.keys().isdisjoint(words):
        return False
    text = "_".join(["", *words, ""])
    phrases = {phrase for word in _TRIGGERS.keys() & words for phrase in _TRIGGERS[word]}
    return any(phrase.search(text) for phrase in phrases)
