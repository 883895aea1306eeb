# Rules for the report, and for what is made when asked for: `snakemake figures`, and
# `snakemake export_reference --config name=h200`.

from crossover.tables.run_tables import REPORT_FILES


rule render_report:
    input:
        **RUN_TABLES,
        plan=rules.write_plan.output.plan,
    output:
        **{name: f"{RESULTS}/{file}" for name, file in REPORT_FILES.items() if name != "report"},
        report=report(
            f"{RESULTS}/{REPORT_FILES['report']}",
            caption="../report/report.rst",
            category="Report",
            labels={"page": "answers, figures, cells, machine"},
        ),
    log:
        f"{RESULTS}/logs/render_report.log",
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
        page=get_page(),
        templates=get_file("report"),
    message:
        "Writing {output.report}"
    script:
        "../scripts/render_report.py"


rule figures:
    input:
        **RUN_TABLES,
        plan=rules.write_plan.output.plan,
    output:
        # Which figures have data is known once the tables are.
        folder=report(
            directory(f"{RESULTS}/figures"),
            patterns=["{study}/{kind}.svg"],
            caption="../report/figure.rst",
            category="{study}",
            labels={"figure": "{kind}"},
        ),
    log:
        f"{RESULTS}/logs/figures.log",
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
    message:
        "Drawing the figures as SVG, PDF and PNG"
    script:
        "../scripts/plot_figures.py"


rule export_reference:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.analyse_run.output.cells,
        provenance=rules.render_report.output.provenance,
    output:
        reference=f"{RESULTS}/reference/{CONFIG.keys.name}/reference.json",
        trials=f"{RESULTS}/reference/{CONFIG.keys.name}/trials.parquet",
    log:
        f"{RESULTS}/logs/export_reference.log",
    localrule: True
    conda:
        get_environment("analysis")
    params:
        script=get_script("export_reference"),
        results=subpath(input.cells, parent=True),
        name=CONFIG.keys.name,
        output=subpath(output.reference, parent=True),
    message:
        "Writing the reference {params.output}"
    shell:
        "python3 {params.script:q} {params.results:q} --name={params.name:q} --output={params.output:q} > {log:q} 2>&1"
