"""What kinds of units there are, as the game's own numbers."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class UnitType:
    """One kind of unit; times in game loops, of which a second has 22.4.

    Attributes:
        name: as in a map's file.
        race: whose unit it is, in StarCraft II's words.
        type_id: StarCraft II's number of the unit.
        health: hit points at the start, the most there can be.
        shield: the same of the shield; 0 for races without.
        armour: taken off each hit on the health, not of those on the shield.
        damage: of one hit.
        hits: how many hits an attack is.
        bonus: what each hit does more against units with the attribute ``bonus_against``.
        bonus_against: that attribute.
        attribute: light or armoured.
        cooldown: between two attacks.
        follow_through: how long after an attack a unit stands before it goes after its target.
        shown_cooldown: what SMAC divides a cooldown by.
        range: of the weapon, from edge to edge.
        speed: way per loop.
        radius: of the edge.
        separation: how near to it others can stand; the radius unless given.
        health_regeneration: per loop.
        splash: length across the shot and width along it of what an attack hits around its target.
        climbs: whether cliffs are no obstacle.
    """

    name: str
    race: Literal["Terran", "Zerg", "Protoss"]
    type_id: int
    health: float
    shield: float = 0.0
    armour: float = 0.0
    damage: float
    hits: int = 1
    bonus: float = 0.0
    bonus_against: str = ""
    attribute: str = "light"
    cooldown: float
    follow_through: float = 0.0
    shown_cooldown: float
    range: float
    speed: float
    radius: float
    separation: float = 0.0
    health_regeneration: float = 0.0
    splash: tuple[float, float] = (0.0, 0.0)
    climbs: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "separation", self.separation or self.radius)

    def hit(self, other: "UnitType") -> float:
        """What one hit does to another kind of unit, before its armour."""
        return self.damage + (self.bonus if other.attribute == self.bonus_against else 0.0)


UNITS: dict[str, UnitType] = {
    unit.name: unit
    for unit in (
        UnitType(
            name="marine", race="Terran", type_id=48,
            health=45, damage=6, cooldown=13.7, shown_cooldown=15,
            range=5, speed=0.1406, radius=0.375,
        ),
        UnitType(
            name="zealot", race="Protoss", type_id=73,
            health=100, shield=50, armour=1, damage=8, hits=2,
            cooldown=19.3, follow_through=19.3, shown_cooldown=22, range=0.1, speed=0.1406,
            radius=0.5,
        ),
        UnitType(
            name="stalker", race="Protoss", type_id=74,
            health=80, shield=80, armour=1, damage=13, bonus=5,
            bonus_against="armoured", attribute="armoured", cooldown=30.0, shown_cooldown=35,
            range=6, speed=0.1844, radius=0.625,
        ),
        UnitType(
            name="colossus", race="Protoss", type_id=4,
            health=200, shield=150, armour=1, damage=10, hits=2,
            bonus=5, bonus_against="light", attribute="armoured", cooldown=24, shown_cooldown=24,
            range=7, speed=0.1406, radius=1, separation=0.75, splash=(2.8, 0.3), climbs=True,
        ),
        UnitType(
            name="zergling", race="Zerg", type_id=105,
            health=35, damage=5, cooldown=11.1, shown_cooldown=11,
            range=0.1, speed=0.184, radius=0.375, health_regeneration=0.38 / 22.4,
        ),
    )
}  # fmt: skip
"""Kinds of units by name."""
