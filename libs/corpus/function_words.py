"""Words that say how a question is put, not what it is about, in the languages most asked in.

In a small or mixed collection they are rare enough to look telling. Accents are folded away; a word
that means something in one language is left out for all.
"""

from collections.abc import Mapping


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


# By language.
LISTS: Mapping[str, frozenset[str]] = {
    "en": _listed("""
        a about after all also am an and any are as at be because been before being between both
        but by can could did do does doing during each for from had has have having he her here
        his how i if in into is it its just may me might more most must my no nor not of off on
        only or other our out over own shall she should so some such than that the their them then
        there these they this those through to too under until up very was we were what when where
        whether which while who whom whose why will with within would you your
    """),
    "de": _listed("""
        aber alle als am an auch auf aus bei beim bin bis bist da damit dann das dass dem den denn
        der des die dies diese diesem diesen dieser dieses doch du durch ein eine einem einen
        einer eines er es fur haben hat hatte ich ihm ihn ihr ihre im ins ist ja jede jeder jedes
        kann kein keine konnen mehr mein meine mich mir mit muss mussen nach nicht noch nur ob
        oder ohne sehr sein seine sich sie sind soll sollen uber um und uns unser unter vom von
        vor wann warum was weil welche welchem welchen welcher welches wem wen wenn wer werden wie
        wieso wieviel wir wird wo wurde wurden zu zum zur
    """),
    "pt": _listed("""
        ao aos ate cada com como da das dela dele deles depois dos e ela elas ele eles em entre
        era essa esse esta estao este eu foi foram ha isso isto ja lhe mas mesmo meu minha muito
        na nao nas nem nos num numa o onde os ou para pela pelas pelo pelos pode podem por porque
        posso qual quais quando quanta quantas quanto quantos que quem sao se sem ser seu seus
        sobre sua suas tambem tem ter um uma umas uns
    """),
    "es": _listed("""
        al algo asi aunque con cual cuales cuanta cuantas cuanto cuantos cuando de debe deben del
        desde donde durante el ellas ellos en es esto estos fue fueron hacia hasta hay la las le
        les lo los mi mis muy ni otra otro pero puede pueden pues sea segun si sido son su sus
        tener tiene tienen tras tu un una uno unos usted ya y yo
    """),
    "fr": _listed("""
        alors au aussi aux avec avoir ce cela ces cet cette ceux chaque chez comment dans depuis
        donc du elle elles est et etait etre eux faire il ils je jusqu leur leurs lors lui ma mais
        meme mes moins notre nous on par parce pendant peu peut peuvent plus pourquoi quand quel
        quelle quelles quels qui quoi sa sans sera ses sont sous sur ta tes tous tout toute toutes
        trop une vers vos votre vous
    """),
    "it": _listed("""
        ai alla alle anche che chi ci come cui da dai dal dalla degli dei del della delle di dove
        e gli ha hanno il in io la le lo loro ma mi nel nella nelle noi non nostro o per perche
        piu quale quali quando quanto quella quelli quello questa questi questo se si sono su sua
        sue sul sulla suo tra un una voi
    """),
    "nl": _listed("""
        aan als bij dan dat de deze die dit door een en er geen haar heb hebben heeft het hij hoe
        hun ik in is je kan kunnen maar met mijn moet moeten naar niet nog of om onder ons ook op
        over te tegen tot uit van voor waar waarom wanneer wat we welke wie wij wordt worden ze
        zich zij zijn zonder
    """),
}  # fmt: skip

# Words of one list that mean something in another language.
_MEANT = "ai comment con die door dove fur hat hay os sea son sur van war"
_MEANING = _listed(_MEANT)

FUNCTION_WORDS = frozenset[str]().union(*LISTS.values()) - _MEANING
