# SPDX-License-Identifier: Apache-2.0
"""Resumed after any stop, after any failure of a call on a file, and with more epochs: the same bytes in every case.

This takes minutes. `resume_test.py`, `crash_test.py` and `take_up_test.py` have a part of each.
"""

import harness
import resume_test
import skips
import take_up_test
from harness import DATA, MLP, changed


class EveryCase(resume_test.Stopped):
    def test_any_moment(self):
        for name in resume_test.CASES:
            for execution in ("serial", "threads"):
                with self.subTest(name=name, execution=execution):
                    self.check(name, execution)


class TakeUp(take_up_test.Stoppable):
    def test_the_command_suggested_after_a_signal_works_as_printed(self):
        for execution in ("serial", "threads"):
            with self.subTest(execution):
                self.check_suggested_command(execution, 300)

    def test_more_epochs_where_the_past_is_the_same(self):
        for name in take_up_test.MORE_EPOCHS:
            self.check_more_epochs(name)


@skips.needs("test-programs", harness.FAILING_FILES)
class EveryFailure(harness.EndToEnd):
    def check_every_failure(self, call):
        """The k-th such call fails, for every k there is."""
        experiment = changed(
            MLP, {"loader.limit_train": 48, "train.checkpoint": {"every": 1, "unit": "minibatch"}}
        )
        whole = self.train(experiment, "whole")
        self.write("broken_disk.yaml", experiment)
        command = ("run", "broken_disk.yaml", "--quiet", "--out", "broken_disk", "--overwrite")
        for k in range(1, 1000):
            done = self.finish(self.start(*command, environment=self.failing("broken_disk", call, k)))
            if done.code == 0:
                break
            with self.subTest(k=k):
                self.assertEqual(done.code, DATA, done.err)
                self.assert_errors(done, r"^broken_disk(/.*)?: cannot .*: No space left on device$")
                self.resume("broken_disk", "--quiet")
                self.assert_same_result(whole, harness.Run(self.folder / "broken_disk"))
        self.assertGreater(k, 15, "hardly anything was written")

    def test_every_write_that_fails(self):
        self.check_every_failure("write")

    def test_every_fsync_that_fails(self):
        self.check_every_failure("fsync")

    def test_every_rename_that_fails(self):
        self.check_every_failure("rename")


if __name__ == "__main__":
    harness.main()
