"""What MELEE is measured by: speed, gains, the comparisons of the paper; none of it is a test."""
