# Rules that turn rows into tables. The names in capitals that are not set here are from rules/config.smk.

from dataclasses import asdict

from crossover.tables.run_tables import TABLES


rule write_plan:
    input:
        published=PLAN.published,
    output:
        plan=f"{RESULTS}/plan.json",
    log:
        f"{RESULTS}/logs/write_plan.log",
    # Ahead of the trials, since a report on an unfinished run needs the plan.
    priority: ROUNDS.first
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
        run=asdict(PLAN),
        # Without the key `name`, which only the export of a reference needs.
        config={key: value for key, value in CONFIG.complete.items() if key != "name"},
        planned_keys=get_planned_keys,
        several_hosts=SEVERAL_HOSTS,
        references=[str(folder) for folder in REFERENCES],
        # With explicit devices, the user knows what the machine has.
        note=None if CONFIG.devices else MACHINE.note,
    message:
        "Writing the plan of the run"
    script:
        "../scripts/write_plan.py"


rule collect_measurements:
    input:
        rows=get_measured_rows,
    output:
        measurements=f"{RESULTS}/measurements.parquet",
    log:
        f"{RESULTS}/logs/collect_measurements.log",
    # This table does not need the roofs, so it may be made before they are probed.
    priority: ROUNDS.first
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
        several_hosts=SEVERAL_HOSTS,
    message:
        "Collecting the rows of all trials"
    script:
        "../scripts/collect_measurements.py"


rule give_first_answer:
    input:
        rows=get_rows_of_first_answer,
        references=get_references,
    output:
        answer=f"{RESULTS}/first_answers/{{study}}.txt",
    log:
        f"{RESULTS}/logs/give_first_answer/{{study}}.log",
    priority: ROUNDS.first
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
        # Not from plan.json, which changes with what a first answer does not use.
        study=lambda wildcards: asdict(PLAN.study[wildcards.study]),
        prices=CONFIG.keys.prices,
        several_hosts=SEVERAL_HOSTS,
    message:
        "Answering {wildcards.study} from its first trials"
    script:
        "../scripts/give_first_answer.py"


rule analyse_run:
    input:
        plan=rules.write_plan.output.plan,
        measurements=rules.collect_measurements.output.measurements,
        trainings=PLAN.trainings,
        searches=PLAN.planned_searches,
        roofs=PLAN.roofs,
        references=get_references,
    output:
        **{name: f"{RESULTS}/{name}.parquet" for name in TABLES},
        **{
            f"{name}_csv": report(
                f"{RESULTS}/{name}.csv",
                caption="../report/table.rst",
                category="Tables",
                labels={"table": name.replace("_", " ")},
            )
            for name in TABLES
        },
    log:
        f"{RESULTS}/logs/analyse_run.log",
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
        several_hosts=SEVERAL_HOSTS,
    message:
        "Computing all tables of the run"
    script:
        "../scripts/analyse_run.py"


# Only when asked for.
rule largest_batches:
    input:
        searches=list(PLAN.searches),
    output:
        text=f"{RESULTS}/largest_batches.txt",
    log:
        f"{RESULTS}/logs/largest_batches.log",
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
    message:
        "Listing the largest batches"
    script:
        "../scripts/list_largest_batches.py"


RUN_TABLES = {
    "measurements": rules.collect_measurements.output.measurements,
    **{name: f"{RESULTS}/{name}.parquet" for name in TABLES},
}
