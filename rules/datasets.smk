rule make_dataset:
    input:
        library=library("datasets/*.py"),
        real_files=lambda wildcards: real_files(CONFIG.datasets[wildcards.dataset]),
    output:
        dataset=f"{RESULTS}/datasets/{{dataset}}.safetensors",
    log:
        f"{RESULTS}/logs/make_dataset/{{dataset}}.log",
    # Before any trial, or the trials that need it would fall behind their round.
    priority: len(ROUNDS) + 1
    conda:
        "../envs/analysis.yaml"
    params:
        options=lambda wildcards: CONFIG.datasets[wildcards.dataset],
    message:
        "Making dataset {wildcards.dataset}"
    script:
        "../scripts/make_dataset.py"
