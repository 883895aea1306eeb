# What this workflow does to Snakemake's process: while the rules are read, when the run starts, and when it ends.

import atexit
import gc
import os
import re
import signal
import sys
from pathlib import Path

# The folder of the workflow's files: a checkout, the installed package, or, if Snakemake reads the rules from a repository
# elsewhere, the installed package of the same version.
REPOSITORY = Path(str(workflow.current_basedir)).parent
if not REPOSITORY.is_dir():
    # Snakemake drops the last newline.
    read = lambda path: Path(workflow.source_path(f"../{path}")).read_text().rstrip()
    version = re.search('__version__ = "(.*)"', read("scripts/crossover/__init__.py"))[1]
    problem, command = None, "pip install"
    try:
        from crossover import __version__ as installed
        from crossover.home import ROOT as REPOSITORY
    except ImportError:
        problem = "its package is not installed"
    else:
        own_rules = REPOSITORY.glob("rules/*.smk")
        if installed != version:
            problem = f"version {installed} is installed"
        # Between releases, the rules change without their version.
        elif any(read(f"rules/{file.name}") != file.read_text().rstrip() for file in own_rules):
            problem = "the installed package of this version has others"
            command += " --force-reinstall --no-deps"
    if problem:
        # As in github.com/OWNER/NAME/rules@TAG; a plain URL names no repository.
        place, sign, tag = str(workflow.current_basedir).rpartition("@")
        source = f"git+https://{Path(place).parent}@{tag}"
        advice = f"run `{command} {source}`" if sign else "install the package that belongs to them"
        sys.exit(f"error: these rules are of Crossover {version}, but {problem}; {advice}")
IS_MODULE = Path(workflow.basedir).resolve() not in (REPOSITORY.resolve(), REPOSITORY.resolve() / "workflow")

# ---- While the rules are read: changes that cannot wait for `begin_run`, each with its reason. Nothing else changes the process
# then, except that `RUN.machine` in rules/config.smk sets CROSSOVER_MACHINE, from which jobs learn what to plan for.

# Snakemake's modules and jobs live as long as the run: collecting garbage among them would take a fifth of a dry-run's time.
gc.freeze()
gc.set_threshold(100_000, 50, 100)
# For the imports from the library below. The installed package is on the path already.
if (REPOSITORY / "scripts" / "crossover").is_dir():
    sys.path.insert(0, str(REPOSITORY / "scripts"))
# Jobs, which read the rules again, import from their script's folder, not from the working directory.
if not IS_MODULE:
    os.environ.pop("PYTHONSAFEPATH", None)
    sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]

from crossover.config.options import report_command, tell
from crossover.errors import one_line_errors
from crossover.machine.counters import read_counters
from crossover.machine.discovery import prefer_this_environment
from crossover.machine.invocation import INVOCATION, hand_down_invocation, this_invocation
from crossover.machine.lease import hand_down_gpus
from crossover.machine.turns import hand_down_turns
from crossover.plan.before_run import budget_words, check_both_kinds, check_executor, notes_at_start
from crossover.plan.snakemake_internals import SnakemakeRun
from crossover.plan.terminal import Progress, failure_words
from crossover.tables.run_tables import REPORT_FILES
from snakemake.logging import logger

RUN = SnakemakeRun(workflow)
PROGRESS = Progress(
    logger.info,
    up_to_date=lambda: tell_answers_again(),
    missing=lambda: [trial for _, trial in get_trials_to_measure()],
    names=RUN.names,
    begin=lambda: begin_run(),
)
# Each `use rule` statement of a workflow reads the rules of its module again.
TELLS = RUN.is_main and not RUN.reads_again(logger)

# Compilers, a parameter of trials, are looked up in PATH. Jobs need the same PATH, and do not call `begin_run`.
prefer_this_environment()
# `envvars` in rules/config.smk demands a value, which `begin_run` replaces.
os.environ.setdefault(INVOCATION, "")
if TELLS:
    RUN.show_progress(logger, PROGRESS)
    # `begin_run` reports the load by others since this moment.
    COUNTERS = read_counters()
    if IS_MODULE:
        # Snakemake does not call the handlers of a module, only those of the workflow that uses it.
        atexit.register(lambda: tell_at_exit())


# ---- When the run starts and ends.


def tell_text(path):
    print("", Path(path).read_text(encoding="utf-8"), sep="\n", file=sys.stderr)


def tell_answers_again():
    # For the user's targets, or those of a workflow that uses this one, the report may be out of date.
    if not IS_MODULE:
        if RUN.makes():
            tell_text(rules.render_report.output.closing)
        if RUN.makes("largest_batches"):
            tell_text(rules.largest_batches.output.text)


def tell_new_answers():
    if not RUN.touches:
        if PROGRESS.finished["render_report"]:
            tell_text(rules.render_report.output.closing)
        if PROGRESS.finished["largest_batches"]:
            tell_text(rules.largest_batches.output.text)
        if PROGRESS.finished["figures"]:
            tell(f"Figures: {rules.figures.output.folder}")
        if PROGRESS.finished["export_reference"]:
            tell_text(rules.export_reference.log[0])


def tell_failures():
    words = failure_words(PROGRESS.failed, PROGRESS.ended, PROGRESS.reasons, report_command(FOLDER), FOLDER)
    print("", words, sep="\n", file=sys.stderr)


def tell_at_exit():
    # If no jobs are planned, there is nothing to tell, and the rules may not have been read to the end.
    if PROGRESS.planned:
        tell_failures() if PROGRESS.failed or PROGRESS.ended or PROGRESS.stopped else tell_new_answers()


def tell_stops():
    # A scheduler sends SIGTERM to the jobs too, which may end before Snakemake logs its own.
    handle = signal.getsignal(signal.SIGTERM)

    def stop(*arguments):
        PROGRESS.stopped = True
        handle(*arguments)

    if callable(handle):
        signal.signal(signal.SIGTERM, stop)


def begin_run():
    """Called with Snakemake's log of the run's jobs, when the executor is known: `onstart` of a module is never called."""
    if RUN.is_dry_run:
        return
    tell_stops()
    hand_down_invocation(this_invocation(sys.argv[1:], os.getcwd(), own_config=RUN.has_own_config))
    if RUN.is_local:
        hand_down_turns()
        if not IS_MODULE:
            RUN.remove_job_rate_limit()
    if PROGRESS.planned["export_reference"]:
        with one_line_errors():
            check_both_kinds(PLAN.devices)
    if PROGRESS.measures() and not RUN.touches:
        with one_line_errors():
            check_executor(CONFIG, MACHINE, local=RUN.is_local)
            if PLAN.minutes is not None:
                tell(budget_words(PLAN.minutes, PLAN.trials_of_grid, get_earlier_rows()))
            for note in notes_at_start(CONFIG, MACHINE, COUNTERS, RUN.is_local, RUN.cores):
                tell(f"Note: {note}")
            if RUN.is_local and any(side.startswith("cuda") for side in PLAN.devices):
                hand_down_gpus()
        # A dry-run need not wait for these modules.
        from crossover.measurement.process.children import start_early
        from crossover.measurement.process.reservation import choose_isolation

        if RUN.is_local and choose_isolation("auto") == "server":
            start_early()
    # If a job fails, Snakemake keeps the report of the run before.
    if PROGRESS.outdates_report() and not RUN.touches:
        for name in REPORT_FILES.values():
            Path(FOLDER, name).unlink(missing_ok=True)


onsuccess:
    tell_new_answers()


onerror:
    tell_failures()
