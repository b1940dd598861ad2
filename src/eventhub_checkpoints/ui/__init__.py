"""The page of `ehcp ui`: a group's lag, events and findings in a browser; needs the extra `ui`.

Pages are rendered on the server, those with lags from what `operations.monitor` has polled, so that
the number of viewers does not matter. A script of this package, `static/page.js`,
replaces the part of a page that changes.

- `server`: the HTTP server. `access`: who may see and change something. `pages`: the routes.
- `board`: what a page shows of a group. `trend`: a sparkline. `events`: what it shows of an event.
  `rewind`: the form of a reset.
- `readings`: reads from stores and hubs that a page waits for.
"""
