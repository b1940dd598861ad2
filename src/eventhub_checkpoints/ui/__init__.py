"""The page of `ehcp ui`: groups, partitions and rewinds in a browser; needs the extra `ui`.

Pages are rendered on the server from what `operations.monitor` has polled, so that the number of
viewers does not matter. The only script is htmx, which replaces the part of a page that changes.

- `server`: the HTTP server. `access`: who may see and change something. `pages`: the routes.
- `board`: what a page shows of a group. `trend`: a sparkline. `rewind`: the form and the preview of
  a reset.
"""
