"""What may release: integer weights, the certificate that proves them, exact draws."""
