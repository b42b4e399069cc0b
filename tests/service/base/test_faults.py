"""What pydantic says, as messages: word for word in English."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from service.base.faults import sentence_of
from service.base.messages import Message, Text, said
from service.pages.languages import language_named


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int


class Whole(BaseModel):
    text: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-z]+$")] = "a"
    words: Annotated[tuple[str, ...], Field(min_length=2, max_length=3)] = ("a", "b")
    one: Annotated[list[int], Field(max_length=1)] = [1]
    table: Annotated[dict[str, int], Field(min_length=1)] = {"a": 1}
    sort: Literal["a", "b", "c"] = "a"
    only: Literal["image"] = "image"
    yes: bool = True
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    count: Annotated[int, Field(ge=1, le=5)] = 1
    part: Part | None = None
    day: str = ""

    @field_validator("day")
    @classmethod
    def _is_none(cls, day):
        if day == "plain":
            raise ValueError("a plain text")
        if day:
            raise ValueError(Message("there is no field %(name)s", name=repr(day)))
        return day


WRONG = [
    *({"text": each} for each in (1, "", "abcd", "A", "\ud800")),
    *({"words": each} for each in (1, ["a"], list("abcd"))),
    *({"one": each} for each in (3, [1, 2])),
    *({"table": each} for each in (1, {})),
    *({"sort": "x"}, {"only": "x"}),
    *({"yes": each} for each in ("q", [])),
    *({"share": each} for each in (float("nan"), "x", [])),
    *({"count": each} for each in (1.5, "x", [], 0, 9, "9" * 5_000)),
    *({"part": each} for each in (3, {}, {"size": 1, "colour": 2})),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_what_pydantic_says_and_has_a_german_text(wrong):
    with pytest.raises(ValidationError) as refused:
        Whole.model_validate(wrong)
    first = refused.value.errors()[0]
    sentence = sentence_of(first)
    assert (sentence, isinstance(sentence, Text)) == (first["msg"], True)
    assert said(sentence, language_named("de")) != sentence


def test_a_bound_is_said_as_pydantic_writes_it():
    with pytest.raises(ValidationError) as refused:
        Whole(share=0)
    sentence = sentence_of(refused.value.errors()[0])
    assert sentence == "Input should be greater than 0"
    assert said(sentence, language_named("de")) == "Der Wert muss größer als 0 sein"


def test_what_a_validator_raised_keeps_what_it_was_made_of():
    for day, german in (("x", "es gibt kein Feld 'x'"), ("plain", "a plain text")):
        with pytest.raises(ValidationError) as refused:
            Whole(day=day)
        assert said(sentence_of(refused.value.errors()[0]), language_named("de")) == german


def test_another_word_may_stand_for_the_input():
    with pytest.raises(ValidationError) as refused:
        Whole(count=9)
    sentence = sentence_of(refused.value.errors()[0], Message("it"))
    assert sentence == "it should be less than or equal to 5"
    assert said(sentence, language_named("de")) == "der Wert darf höchstens 5 sein"
