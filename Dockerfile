# The README's quick look: docker build -t crossover . && docker run --gpus all -v "$PWD/results:/crossover/results" crossover
FROM python:3.12
WORKDIR /crossover
COPY . .
RUN pip install -r requirements.txt
CMD ["snakemake", "--cores", "1", "--resources", "gpu=1", "--configfile", "config/quick.yaml"]
