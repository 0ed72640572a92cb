"""Many runs at once lose nothing, and the same seed gives the same events."""

from benchmarks.load import Load


def test_nothing_is_lost_under_load() -> None:
    load = Load(runs=80, orchestrators=5, workers=2, seed=1)
    load.play()
    assert load.lost() == []
    assert load.seen["turns"] > 400


def test_a_seed_repeats_itself() -> None:
    loads = [Load(runs=20, orchestrators=3, workers=1, seed=2) for _ in range(2)]
    for load in loads:
        load.play()
    assert loads[0].calls == loads[1].calls
    assert loads[0].latencies == loads[1].latencies
