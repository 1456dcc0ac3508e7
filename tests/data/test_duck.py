"""The database's own ways are translated at its door."""

import pytest

from unless.data.duck import Workshop


class Interrupted:
    def execute(self, query):
        raise RuntimeError("Query interrupted")

    def close(self):
        pass


def test_ctrl_c_during_a_query_is_ctrl_c():
    with Workshop(2**26) as shop:
        shop.connection.close()
        shop.connection = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            shop.run("select 1")


def test_the_folder_goes_with_the_workshop():
    with Workshop(2**26) as shop:
        shop.place(".csv").write_text("x")
        folder = shop.folder
    assert not folder.exists()
