"""`method: ganobfuscator`: a WGAN-GP with clip norms from public records, a comparison."""

from service.methods.experience import only_experience
from service.methods.ganobfuscator.card import CARD
from service.methods.ganobfuscator.order import GanobfuscatorOrder
from service.methods.idpgan.knobs import public_dataset_of
from service.methods.idpgan.price import events
from service.methods.idpgan.resolve import check_networks, resolve_plain
from service.methods.idpgan.work import estimate
from service.methods.interface import Method

METHOD = Method(
    name="ganobfuscator",
    takes=frozenset({"table", "image"}),
    order=GanobfuscatorOrder,
    check=check_networks,
    resolve=resolve_plain,
    events=events,
    estimate=estimate,
    card=CARD,
    also_reads=public_dataset_of,
    forecast=only_experience("ganobfuscator"),
)
