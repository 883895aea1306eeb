# The templates of the page, with its style sheets and scripts.
PAGE_FILES = sorted(
    house(path.relative_to(workflow.basedir))
    for path in Path(workflow.basedir, "report/page").rglob("*")
    if path.is_file()
)


rule render_report:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        claims=rules.check_claims.output.parquet,
        cost_models=rules.fit_cost_models.output.parquet,
        problems=rules.list_problems.output.parquet,
        figures=figures_shown,
        # Only where a study trains models.
        quality=rules.summarise_quality.output.parquet if TRAININGS else [],
        # Only where a study asks for them.
        searches=rules.collect_largest_batches.output.parquet if SHOWN_SEARCHES else [],
        # Only where a study times the CPU on fewer cores too.
        cores_worth=rules.estimate_cores_worth.output.parquet if ON_FEWER_CORES else [],
        # Only where runs are merged: what each says of itself.
        merged=merged_provenances,
        page=PAGE_FILES,
        library=ANALYSIS_LIBRARY,
    output:
        report=report(
            kept("{results}/report.html"),
            caption="../report/report.rst",
            category="Report",
            labels={"page": "answers, figures, cells, machine"},
        ),
        markdown=kept("{results}/summary.md"),
        csv=report(
            kept("{results}/summary.csv"),
            caption="../report/summary.rst",
            category="Tables",
            labels={"table": "summary"},
        ),
        # What a run prints at its end.
        closing=kept("{results}/summary.txt"),
        provenance=kept("{results}/provenance.json"),
    log:
        "{results}/logs/render_report.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/render_report.log"),
        templates=lambda wildcards, input: os.path.commonpath(input.page),
        studies={name: asdict(study) for name, study in STUDIES.items()},
        facts={
            "trials": CONFIG.trials,
            # Of merged runs each had its own.
            "effort": None if MERGED else asdict(CONFIG.effort),
            "cpu_threads": CONFIG.cpu_threads,
            "seed": CONFIG.seed,
            "note": None if MERGED else MACHINE.note,
            "price_per_hour": CONFIG.prices,
            "currency": CONFIG.currency,
        },
        # What changes from run to run, such as its command line, is no parameter: it would make the report again.
        config=CONFIG.complete,
        # Of these the report takes checksums only; as an input, a lost dataset would be made, and measured with, again.
        datasets=sorted(dataset_files(CELLS)),
        published=sorted({path for study in STUDIES.values() if (path := published_results(study))}),
        partial=is_partial,
        merged=MERGED_FOLDERS,
        # Linked only, so not an input: its edit need not make the report again.
        method=house("docs/method.md"),
    message:
        "Writing {output.report}"
    script:
        "../scripts/render_report.py"
