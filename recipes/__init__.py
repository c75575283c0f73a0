"""Trainings of one task each, written with public names only, as a user would write their own."""
