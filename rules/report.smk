# From tables to figures and the report.

from crossover.plan.outputs import SUFFIXES, figure_file, figures_of
from crossover.tables.outdated import REPORT_FILES

FIGURES = figures_of(PLAN, CONFIG, held_against=bool(REFERENCES))


rule plot_figures:
    input:
        **RUN_TABLES,
        plan=rules.write_plan.output.plan,
        library=get_library(*COMPUTING, "figures"),
    output:
        [
            report(
                update(figure_file(RESULTS, study, kind, "svg")),
                caption="../report/figure.rst",
                category=study,
                labels={"figure": kind.replace("_", " ")},
            )
            for study, kind in FIGURES
        ],
        [update(figure_file(RESULTS, *figure, suffix)) for figure in FIGURES for suffix in SUFFIXES[1:]],
    log:
        f"{RESULTS}/logs/plot_figures.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    threads: JOBS.share
    params:
        failures=get_failures(f"{RESULTS}/logs/plot_figures.log"),
    message:
        f"Drawing {len(FIGURES)} figures"
    script:
        "../scripts/plot_figures.py"


rule render_report:
    input:
        **RUN_TABLES,
        plan=rules.write_plan.output.plan,
        figures=[figure_file(RESULTS, study, kind, "svg") for study, kind in FIGURES],
        # The templates of the page, with its style sheets and scripts.
        page=sorted(
            workflow_file(path)
            for path in (HOUSE / "report").rglob("*")
            if path.is_file() and path.suffix != ".rst"
        ),
        library=get_library(*COMPUTING, "figures", "report"),
    output:
        **{name: update(f"{RESULTS}/{file}") for name, file in REPORT_FILES.items() if name != "report"},
        report=report(
            update(f"{RESULTS}/{REPORT_FILES['report']}"),
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
        failures=get_failures(f"{RESULTS}/logs/render_report.log"),
        templates=lambda wildcards, input: os.path.commonpath(input.page),
    message:
        "Writing {output.report}"
    script:
        "../scripts/render_report.py"
