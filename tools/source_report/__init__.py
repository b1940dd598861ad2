"""Count in a source tree what is decided, parsed, named or held in more than one place.

- `tree`: modules, their imports, and the orders and circles that these make.
- `rules`: what is counted, each as a function of a tree.
"""
