rule measure_cell:
    input:
        script=house("scripts/measure_cell.py"),
        code=measuring_code("trial", "cells/*/{workload}/**/*.parquet"),
        dataset=dataset_of,
    output:
        f"{RESULTS}/cells/{PLACED_CELL}/trial-{{trial}}.parquet",
    log:
        f"{RESULTS}/logs/measure_cell/{PLACED_CELL}/trial-{{trial}}.log",
    priority: turn_of
    conda:
        "../envs/benchmark.yaml"
    threads: threads_of
    resources:
        **CLASS_RESOURCES,
        gpu=gpus_of,
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        trial=trial_of,
    message:
        f"Measuring {{wildcards.study}}: size {{wildcards.size}} on {{wildcards.device}}{OF_CLASS}, {{wildcards.precision}}, {{wildcards.protocol}}, trial {{wildcards.trial}}"
    shell:
        "python3 {input.script:q} {params.trial[options]} --trial={wildcards.trial}"
        " --dataset={input.dataset:q} --output={output:q} > {log:q} 2>&1"
