"""Passwords in addresses are found and hidden however they are spelled."""

import pytest

from tallyveil.budget.postgresql import find_secrets, remove_secrets
from tallyveil.passwords import hide_in_command


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:s3cret@db/budgets",
        "postgresql://db/budgets?password=s3cret",
        "postgresql://db/budgets?user=ann&PASSWORD=s3cret",
        "postgresql://db/budgets?pass%77ord=s3cret",
        "postgresql://db/budgets?user=ann&%70assword=s3%63ret",
        "postgresql://db/budgets?sslpass%77ord=s3cret&port=5432",
    ],
)
def test_no_spelling_of_a_password_is_kept(address):
    kept = hide_in_command(f"tallyveil ledger show --ledger {address}")
    assert "***" in kept
    assert "s3cret" not in kept
    assert "s3%63ret" not in kept
    assert "s3" not in remove_secrets(address, find_secrets(address))


def test_other_parameters_stay():
    command = (
        "tallyveil ledger show --ledger 'postgresql://ann@db/budgets?port=5432&sslmode=require'"
    )
    assert hide_in_command(command) == command
