# From tables to figures.

from crossover.plan.outputs import SUFFIXES, figure_file, figures_of

FIGURES = figures_of(PLAN, CONFIG, held_against=bool(REFERENCES))


rule plot_figures:
    input:
        **RUN_TABLES,
        plan=rules.write_plan.output.plan,
        library=library(*COMPUTING, "figures"),
    output:
        [
            report(
                kept(figure_file(RESULTS, study, kind, "svg")),
                caption="../report/figure.rst",
                category=study,
                labels={"figure": kind.replace("_", " ")},
            )
            for study, kind in FIGURES
        ],
        [kept(figure_file(RESULTS, *figure, suffix)) for figure in FIGURES for suffix in SUFFIXES[1:]],
    log:
        f"{RESULTS}/logs/plot_figures.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    threads: JOBS.share
    params:
        failures=failures_of(f"{RESULTS}/logs/plot_figures.log"),
    message:
        f"Drawing {len(FIGURES)} figures"
    script:
        "../scripts/plot_figures.py"
