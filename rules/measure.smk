rule measure_cell:
    input:
        script=house("scripts/measure_cell.py"),
        library=MEASUREMENT_LIBRARY,
        workload=workload_of,
        dataset=dataset_of,
    output:
        f"{RESULTS}/cells/{CELL_PATH}/trial-{{trial}}.parquet",
    log:
        f"{RESULTS}/logs/measure_cell/{CELL_PATH}/trial-{{trial}}.log",
    priority: turn_of
    conda:
        "../envs/benchmark.yaml"
    threads: threads_of
    resources:
        gpu=gpus_of,
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        dataset=dataset_option,
        options=options_of,
        environment=environment_of,
    message:
        "Measuring {wildcards.study}: size {wildcards.size} on {wildcards.device}, {wildcards.precision}, {wildcards.protocol}, trial {wildcards.trial}"
    shell:
        "python3 {input.script:q} {params.options:q} --trial={wildcards.trial}"
        " {params.dataset:q} --output={output:q} > {log:q} 2>&1"
