# What a run does besides its jobs: pass facts to them, show the time left and the answers, and give advice on failure.

import atexit

from crossover.machine.counters import read_counters
from crossover.machine.invocation import hand_down_invocation, this_invocation
from crossover.machine.lease import hand_down_gpus
from crossover.machine.threads import threads_for, usable_cores
from crossover.machine.turns import hand_down_turns, turn_of_others
from crossover.plan.checks import check_both_kinds, check_executor, load_by_others
from crossover.plan.terminal import Progress, failure_words
from crossover.tables.outdated import set_aside
from snakemake.logging import logger


def tell_answers():
    print("", Path(RESULTS, "summary.txt").read_text(encoding="utf-8"), sep="\n", file=sys.stderr)


def tell_answers_again():
    # For the user's targets, or those of a workflow that uses this one, the report may be out of date.
    if RUN.makes_report and not IS_MODULE:
        tell_answers()


def tell_new_answers():
    if PROGRESS.finished["render_report"] and not RUN.touches:
        tell_answers()
    if PROGRESS.finished["export_reference"] and not RUN.touches:
        print("", Path(rules.export_reference.log[0]).read_text(encoding="utf-8"), sep="\n", file=sys.stderr)


def tell_failures():
    words = failure_words(PROGRESS.failed, PROGRESS.reasons, get_file("scripts/report_rows.py"), RESULTS)
    print("", words, sep="\n", file=sys.stderr)


PROGRESS = Progress(logger.info, up_to_date=tell_answers_again, rows=lambda: PLAN.rows(PLAN.trials_of_grid))
if RUN.is_main:
    RUN.show_progress(logger, PROGRESS)
    COUNTERS = read_counters()

if IS_MODULE and RUN.is_main:
    # Snakemake calls the handlers of the workflow that uses this one, and none of these.
    hand_down_invocation(this_invocation(sys.argv[1:], os.getcwd()))
    atexit.register(lambda: tell_failures() if PROGRESS.failed or PROGRESS.stopped else tell_new_answers())


# The run's jobs and executor are not known before this point.
onstart:
    hand_down_invocation(this_invocation(sys.argv[1:], os.getcwd()))
    if RUN.is_local:
        hand_down_turns()
        RUN.remove_job_rate_limit()
    if PROGRESS.planned["export_reference"]:
        with one_line_errors():
            check_both_kinds(PLAN.devices)
    if PROGRESS.measures() and not RUN.touches:
        if MACHINE.note and not CONFIG.devices:
            tell(f"Note: {MACHINE.note}")
        if RUN.is_local and (note := load_by_others(COUNTERS, read_counters())):
            tell(f"Note: {note}")
        with one_line_errors():
            if RUN.is_local and (holder := turn_of_others(os.environ)):
                tell(f"Note: trials wait for their turn on this host, which {holder} has now")
            check_executor(CONFIG, MACHINE, local=RUN.is_local)
            if RUN.is_local and "cuda" in PLAN.devices:
                hand_down_gpus()
        # A dry-run need not wait for these modules.
        from crossover.measurement.process.children import start_early
        from crossover.measurement.process.reservation import choose_isolation

        if RUN.is_local and choose_isolation("auto") == "server":
            start_early(threads_for("cpu", CONFIG.cpu_threads, usable_cores()))
    # Done before the first job, which may fail. A workflow that uses this one as a module does this once rows are collected.
    if PROGRESS.outdates_report() and not RUN.touches:
        set_aside(Path(RESULTS))


onsuccess:
    tell_new_answers()


onerror:
    tell_failures()
