"""The colours of every picture: Okabe and Ito's, told apart by people with any colour vision, and the greys of the pages."""

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
BLACK, GREY, FAINT = "#000000", "#8b93a0", "#bbbbbb"

LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""For lines and points, in this order."""

ORDERED = ("#9ecae9", "#3d8fc4", "#0b4a7d")
"""Light to dark, for steps of one quantity."""

INK, MUTED, HAIR, PAPER = "#12171e", "#596373", "#dde2e9", "#ffffff"
"""Text, quiet text, hairlines and ground."""
