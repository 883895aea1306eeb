# A finished run for others, by its own targets: `snakemake export` and `snakemake export_reference --config name=h200`.


rule export:
    input:
        cells=rules.analyse_run.output.cells,
        script=ancient(workflow_file("scripts/export_run.py")),
    output:
        bencher=f"{RESULTS}/export/bencher.json",
        action=f"{RESULTS}/export/action_benchmark.json",
    log:
        f"{RESULTS}/logs/export.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        results=lambda wildcards, input: os.path.dirname(input.cells),
        output=lambda wildcards, output: os.path.dirname(output.bencher),
    message:
        "Writing {params.output} in formats of others"
    shell:
        "python3 {input.script:q} {params.results:q} --output={params.output:q} > {log:q} 2>&1"


rule export_reference:
    input:
        measurements=rules.collect_measurements.output.measurements,
        provenance=rules.render_report.output.provenance,
        script=ancient(workflow_file("scripts/export_reference.py")),
    output:
        [f"{RESULTS}/reference/{CONFIG.name}/{file}" for file in REFERENCE_FILES],
    log:
        f"{RESULTS}/logs/export_reference.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        results=lambda wildcards, input: os.path.dirname(input.measurements),
        name=CONFIG.name,
        output=lambda wildcards, output: os.path.dirname(output[0]),
    message:
        "Writing the reference {params.output}"
    shell:
        "python3 {input.script:q} {params.results:q} --name={params.name:q} --output={params.output:q} > {log:q} 2>&1"
