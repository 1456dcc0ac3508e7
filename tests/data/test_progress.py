"""A bar where somebody looks, silence elsewhere."""

from unless.data.progress import progress


def test_a_bar_is_drawn_only_where_asked_for_or_watched(capsys):
    for show, drawn in ((True, True), (False, False), (None, False)):
        with progress("learning", show, 2) as step:
            step()
            step()
        out, err = capsys.readouterr()
        assert out == ""
        assert ("learning" in err) == drawn


def test_each_stretch_of_work_has_a_time_left_of_its_own(capsys):
    with progress("learning", True, 2) as bar:
        bar.begin("round 1", 3)
        for _ in range(3):
            bar()
        bar.begin("the rest", None)
        bar()
        drawn = bar._drawn
        assert (drawn.n, drawn.total) == (1, None)
        bar.expect(7)
        drawn.refresh()
        assert (drawn.n, drawn.total) == (1, 7)
    said = capsys.readouterr().err
    assert "learning, round 1: " in said
    assert "learning, the rest: " in said
    assert "1/7 [" in said
