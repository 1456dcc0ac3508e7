"""From a page to one HTML file: styles, scripts and data inside, and a policy that lets in nothing else."""

from base64 import b64encode
from hashlib import sha256

from unless.report import components
from unless.report.assets import asset, script
from unless.report.page import Page, to_json
from unless.report.words import shown


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def render(page: Page) -> str:
    """Write the whole page; the same page gives the same bytes."""
    library, own, style = asset("cytoscape.min.js"), script(), asset("page.css")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_digest(library)} {_digest(own)}",
            f"style-src {_digest(style)}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    body = "\n".join(
        part(page)
        for part in (
            components.findings,
            components.explorer,
            components.what_if,
            components.table,
        )
    )
    # cytoscape looks for a style element of this name before it makes its own, which the policy forbids.
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{shown(page.title)}</title>
<style id="__________cytoscape_stylesheet">{style}</style>
</head>
<body>
<a class="skip" href="#found">To the findings</a>
{components.head(page)}
<main>
<noscript><p class="notice">The graph, the what-if and the tables of evidence need scripts; the sentences do not.</p></noscript>
{body}
</main>
{components.foot(page)}
<script type="application/json" id="page-data">{to_json(page).decode()}</script>
<script>{library}</script>
<script>{own}</script>
</body>
</html>
"""  # noqa: E501
