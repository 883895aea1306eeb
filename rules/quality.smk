rule train_model:
    input:
        script=house("scripts/train_model.py"),
        code=measuring_code("training", "trainings/*/{workload}/**/*.parquet"),
        dataset=dataset_of,
    output:
        f"{RESULTS}/trainings/{PLACED_TRAINING}.parquet",
    log:
        f"{RESULTS}/logs/train_model/{PLACED_TRAINING}.log",
    conda:
        "../envs/benchmark.yaml"
    threads: threads_of
    resources:
        **CLASS_RESOURCES,
        gpu=gpus_of,
        mem_mb=mem_mb_of,
        runtime=training_runtime_of,
    params:
        options=training_options_of,
        environment=environment_of,
    message:
        f"Training {{wildcards.study}}: size {{wildcards.size}} on {{wildcards.device}}{OF_CLASS}, {{wildcards.precision}}, seed {{wildcards.seed}}"
    shell:
        "python3 {input.script:q} {params.options:q} --seed={wildcards.seed}"
        " --dataset={input.dataset:q} --output={output:q} > {log:q} 2>&1"


rule summarise_quality:
    input:
        rows=in_a_full_run(TRAININGS),
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/quality.parquet"),
        csv=report(
            kept("{results}/quality.csv"),
            caption="../report/quality.rst",
            category="Tables",
            labels={"table": "quality"},
        ),
        reports=kept("{results}/quality.txt"),
    log:
        "{results}/logs/summarise_quality.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/summarise_quality.log"),
        class_names={name: quality_of(study).classes for name, study in STUDIES.items() if study.quality},
        several_hosts=CONFIG.several_hosts,
        asked=asked_in_part("train_model"),
        now=now_in_part,
    message:
        f"Comparing the quality of {len(TRAININGS)} trained models"
    script:
        "../scripts/summarise_quality.py"
