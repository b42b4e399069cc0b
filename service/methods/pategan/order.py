"""`method: pategan`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.idpgan.knobs import Networks, Optimizer
from service.methods.knobs import LabelShare, LearningRate, Order

MOST_TEACHERS = 5_000
UNITS_OF_A_TEACHER = 10
"""Units of a part, where the order names no number of teachers."""
MOST_DEFAULT_TEACHERS = 2_000


class PateganOrder(Order):
    """A comparison, for tables: noisy votes of teachers on parts of the units teach a student, which the generator follows (PATE-GAN, Jordon et al. 2019)."""

    method: Literal["pategan"]
    steps: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Steps of the student. Each is charged for one noisy vote on every row of a batch.",
        ),
    ] = 300
    votes_per_step: Annotated[
        int, Field(ge=1, le=4_096, description="Synthetic rows of a batch that teachers vote on.")
    ] = 64
    teachers: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_TEACHERS,
            description="Parts of the units, each with a teacher of its own. Default: one for 10 units, 2,000 at most.",
        ),
    ] = None
    teacher_steps: Annotated[
        int, Field(ge=1, le=1_000, description="Steps of every teacher before each vote; what they learn is hidden.")
    ] = 2
    teacher_batch: Annotated[
        int, Field(ge=1, le=1_024, description="Units that a teacher sees in a step, and as many synthetic rows.")
    ] = 16
    teacher_hidden: Annotated[int, Field(ge=1, le=512, description="Width of the one hidden layer of a teacher.")] = 16
    teacher_learning_rate: Annotated[LearningRate, Field(description="Adam's, of the teachers.")] = 3e-3
    vote: Annotated[
        Literal["real", "relative"],
        Field(
            description="What a teacher votes for: rows that it takes for real, as in the paper; or those that it scores above the median of its "
            "own scores of the batch, so that a vote says something even where it takes every row for synthetic."
        ),
    ] = "relative"
    student_steps: Annotated[
        int,
        Field(
            ge=1,
            le=1_000,
            description="Steps of the student after each vote, on all rows that were voted on so far; free.",
        ),
    ] = 20
    generator_steps: Annotated[
        int, Field(ge=1, le=1_000, description="Steps of the generator after each of the student's; free.")
    ] = 10
    label_precision_share: LabelShare = 0.02
    networks: Annotated[Networks, Field(description="Sizes of generator and student, which is its critic.")] = (
        Networks()
    )
    optimizer: Annotated[Optimizer, Field(description="Adam for both; the student's is the critic's.")] = Optimizer(
        generator_learning_rate=3e-3, beta1=0.5
    )

    @property
    def numeric_bins(self) -> int:
        """Bins of a numeric field that declares none."""
        return self.networks.numeric_bins
