"""The kinds of figures: a module each, named as the kind, with a function `draw` and a `CAPTION`."""
