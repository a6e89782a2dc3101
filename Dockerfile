# The operator's image: the operator alone. ray and torch live in the users' images.
ARG PYTHON_VERSION=3.12

FROM python:${PYTHON_VERSION}-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/torchtpu
# Dependencies first, at the lock's versions: a change of the source reuses this layer.
COPY pyproject.toml requirements.lock ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
      > dependencies.txt \
 && /opt/torchtpu/bin/pip install --constraint requirements.lock --requirement dependencies.txt
COPY README.md LICENSE ./
COPY operator operator
RUN /opt/torchtpu/bin/pip install --no-deps .

FROM python:${PYTHON_VERSION}-slim
LABEL org.opencontainers.image.title="torchtpu-operator" \
      org.opencontainers.image.description="Runs native PyTorch on Cloud TPU slices of GKE through KubeRay" \
      org.opencontainers.image.source="https://github.com/torchtpu/torchtpu-operator" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/torchtpu /opt/torchtpu
# Nothing is written but to /tmp: the chart makes the root file system read-only.
ENV PATH=/opt/torchtpu/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080 8081
CMD ["python", "-m", "torchtpu_operator"]
