"""The page of `ehcp ui`: groups, their events and rewinds in a browser; needs the extra `ui`.

Pages are rendered on the server, those with lags from what `operations.monitor` has polled, so that
the number of viewers does not matter. A script of this package, `static/page.js`, replaces the part
of a page that changes.

- `server`: the HTTP server. `access`: who may see and change something. `pages`: the routes, whose
  handlers are in `group_pages`, `event_pages`, `change_pages` and `dead_letter_pages`; `context`:
  what they share.
- `groups`: which groups are shown. `board`: what a page shows of a group. `observations`: what it
  remembers of it. `owners`: names, badges and shares of members. `trend`: curves of a lag.
- `bodies`: what a page shows of events. `rewind`: the form of a reset, and its plan as a drawing.
- `readings`: reads from stores and hubs that a page waits for.
"""
