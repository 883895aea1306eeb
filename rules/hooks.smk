# What a run tells on the terminal beside Snakemake's own lines: the time left, its answers, what to do if it failed.

from crossover.plan.checks import check_executor
from crossover.machine.invocation import hand_down_invocation, this_invocation
from crossover.plan.progress import Progress, cut_inputs, failure_words
from snakemake.logging import logger

PROGRESS = Progress(logger.info)
if workflow.is_main_process:
    logger.addHandler(PROGRESS)
    logger.addFilter(cut_inputs)


onstart:
    hand_down_invocation(this_invocation(sys.argv[1:], os.getcwd()))
    # The executor is known from here on only.
    if PROGRESS.measures() and not workflow.touch:
        with one_line_errors():
            check_executor(CONFIG, MACHINE, local=workflow.local_exec)


onsuccess:
    if PROGRESS.finished["render_report"] and not workflow.touch:
        print("", Path(RESULTS, "summary.txt").read_text(encoding="utf-8"), sep="\n", file=sys.stderr)


onerror:
    print("", failure_words(PROGRESS.failed, RESULTS), sep="\n", file=sys.stderr)
