"""Small linear algebra runs on one thread, and the number before comes back."""

from threading import Event, Thread

import numpy as np
import pytest

from tallyveil._threads import _find_pools, one_blas_thread


def count_threads():
    return [get() for _, get in _find_pools()]


@pytest.fixture
def two_threads():
    before = count_threads()
    for put, _ in _find_pools():
        put(2)
    yield
    for (put, _), number in zip(_find_pools(), before, strict=True):
        put(number)


@pytest.mark.usefixtures("two_threads")
def test_one_inside_and_as_many_as_before_after_it():
    outside = count_threads()
    with one_blas_thread():
        assert all(number == 1 for number in count_threads())
        assert np.allclose(np.eye(300) @ np.ones((300, 300)), 1)
    assert count_threads() == outside
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert count_threads() == outside


@pytest.mark.usefixtures("two_threads")
def test_the_number_comes_back_after_threads_that_overlap():
    """The second enters inside the first and leaves after it."""
    outside = count_threads()
    entered, first_left = Event(), Event()
    still_one = []

    def second():
        with one_blas_thread():
            entered.set()
            assert first_left.wait(10)
            still_one.append(all(number == 1 for number in count_threads()))

    thread = Thread(target=second)
    with one_blas_thread():
        thread.start()
        assert entered.wait(10)
    first_left.set()
    thread.join(10)
    assert still_one == [True]
    assert count_threads() == outside


def test_a_file_that_is_no_library_is_left_alone(tmp_path):
    from tallyveil._threads import _read_pool

    (tmp_path / "openblas.so").write_text("no library")
    assert _read_pool(tmp_path / "openblas.so") == []
