"""Pictures of the pages, drawn by code: `python -m diagrams` writes them into `docs`.

Most are drawn for light and for dark pages, in the shapes and colours of `drawing`:

- `takeover`: a consumer dies, and another one continues.
- `handover`: a consumer joins, and gets a partition. Both are three `lanes` in time.
- `watermark`: the checkpoint while events are finished in any order.
- `layers`: the parts of a program.
- `spark`: three ways to start a Spark job where consumers have stopped.
- `terminal`: what the demo has printed.
- `logo`: the sign in the bar of the pages and in the tab of a browser.
- `card`: what is shown where someone links to a page.
"""
