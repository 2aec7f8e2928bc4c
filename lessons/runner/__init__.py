"""What all lessons share: the catalogue, the stage they play on, workbooks, checks and grades."""
