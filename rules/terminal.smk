# What a run tells on the terminal beside Snakemake's own lines: the time left, its answers, what to do where it failed.

import sys

from crossover.plan.hardware import check_sent
from crossover.plan.progress import MEASURING, ProgressTeller, cut_inputs, failure_words, partial_command_of
from snakemake.logging import logger


def waiting_jobs():
    """The measuring jobs that have not finished, by number, and whether refinement will plan further ones."""
    jobs = list(workflow.dag.needrun_jobs())
    measuring = {job.jobid: (job.rule.name, job.wildcards_dict) for job in jobs if job.rule.name in MEASURING}
    return measuring, any(job.rule.name == "plan_refinement" for job in jobs)


PROGRESS = ProgressTeller(waiting_jobs, logger.info)


def reports_made():
    """The closing lines of the reports that are part of this run."""
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    return [Path(job.output.closing) for job in jobs if job.rule.name == "render_report"]


def partial_command():
    """The command that reports what has finished, with the config of this run."""
    settings = workflow.config_settings
    # It is made here, where nothing tells what was asked of a cluster's nodes.
    of_cluster = (
        {"devices": RUN_DEVICES, "check_devices": False, "several_hosts": True} if MACHINE.elsewhere else {}
    )
    return partial_command_of(settings.configfiles or (), settings.config_args or (), of_cluster)


def look_for_jobs_once():
    """Drop Snakemake's limit of 100 jobs a second, unless another one is asked for.

    To keep the limit, Snakemake (9.27) looks for jobs anew one second after each time it looked, on and on: each finished
    job adds one such look a second, and in a run of thousands they take more time than the jobs.
    """
    limiter = getattr(workflow.scheduler, "job_rate_limiter", None)
    if limiter and (limiter.max_jobs, limiter.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


def measures():
    """Whether this run has jobs that measure, or may come to have some."""
    measuring = {"measure_cell", "train_model", "find_largest_batch", "check_timer", "check_isolation"}
    return any(job.rule.name in measuring or job.is_checkpoint for job in workflow.dag.needrun_jobs())


onstart:
    # The executor is known from here on only.
    with one_line_errors():
        if measures() and not workflow.touch:
            check_executor(CONFIG, MACHINE, local=workflow.local_exec)
            check_sent(CONFIG.classes, local=workflow.local_exec)
        note_unnoted_rows()
    look_for_jobs_once()
    logger.addFilter(cut_inputs)
    logger.addHandler(PROGRESS)


onsuccess:
    for closing in reports_made():
        print(f"\n{closing.read_text(encoding='utf-8')}", file=sys.stderr)


onerror:
    if f"{RESULTS}/summary.txt" in map(str, reports_made()):
        print(f"\n{failure_words(PROGRESS.failed, partial_command())}", file=sys.stderr)
