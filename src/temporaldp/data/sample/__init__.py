"""The bundled data; see NOTICE for source, licence and attribution."""
