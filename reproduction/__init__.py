"""The tables, figures and tested claims of the four papers, computed again and compared.

Run it in the repository: ``python -m reproduction --quick``. README.md tells how to read the
results, ERRATA.md lists where the print is wrong.
"""
