# What building, testing and linting take (not run here: that takes a Docker engine):
#   docker build -f tools/docker/dev.Dockerfile -t reshard-dev tools
#   docker run --rm -it -v "$PWD:/reshard" -w /reshard reshard-dev tools/test.sh
FROM debian:bookworm
COPY deps.sh /reshard/tools/
RUN /reshard/tools/deps.sh test lint && rm -r /var/lib/apt/lists/*
