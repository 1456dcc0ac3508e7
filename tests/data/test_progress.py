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
