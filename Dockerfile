# The command:   docker run --rm -v "$PWD:/data" argmaxable verify model.onnx
# The explorer:  docker run --rm --network host -v "$PWD:/data" argmaxable serve --db runs.db
#
# `serve` listens on 127.0.0.1 only, so it needs the host's network. Runs are stored in /data/runs.db.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.12-slim
ARG EXTRAS=gguf,hub,plot,serve
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[$EXTRAS]" && rm -r /wheels && useradd --create-home user
USER user
WORKDIR /data
ENV ARGMAXABLE_DB=/data/runs.db
ENTRYPOINT ["argmaxable"]
CMD ["--help"]
