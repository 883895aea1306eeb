from crossover.tables.run_tables import REPORT_FILES


rule render_report:
    input:
        **RUN_TABLES,
        plan=rules.write_plan.output.plan,
        figures=[figure_file(RESULTS, study, kind, "svg") for study, kind in FIGURES],
        # The templates of the page, with its style sheets and scripts.
        page=sorted(
            house(path) for path in (HOUSE / "report").rglob("*") if path.is_file() and path.suffix != ".rst"
        ),
        library=library(*COMPUTING, "figures", "report"),
    output:
        **{name: kept(f"{RESULTS}/{file}") for name, file in REPORT_FILES.items() if name != "report"},
        report=report(
            kept(f"{RESULTS}/{REPORT_FILES['report']}"),
            caption="../report/report.rst",
            category="Report",
            labels={"page": "answers, figures, cells, machine"},
        ),
    log:
        f"{RESULTS}/logs/render_report.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    threads: JOBS.share
    params:
        failures=failures_of(f"{RESULTS}/logs/render_report.log"),
        templates=lambda wildcards, input: os.path.commonpath(input.page),
    message:
        "Writing {output.report}"
    script:
        "../scripts/render_report.py"
