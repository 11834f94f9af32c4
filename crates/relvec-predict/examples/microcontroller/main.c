/* Prints what the model files named on the command line predict for five rows of made-up features, with all digits. */
#include <stdio.h>
#include <stdlib.h>

typedef struct model model;
model *model_read(const char *text, size_t length);
size_t model_features(const model *model);
size_t model_predict(const model *model, const double *row, double *out, size_t room);
void model_free(model *model);

int main(int count, char **names) {
    for (int k = 1; k < count; k++) {
        FILE *file = fopen(names[k], "rb");
        if (!file || fseek(file, 0, SEEK_END)) return 1;
        long length = ftell(file);
        char *text = malloc((size_t)length);
        rewind(file);
        if (!text || fread(text, 1, (size_t)length, file) != (size_t)length) return 1;
        fclose(file);
        model *read = model_read(text, (size_t)length);
        free(text);
        if (!read) return 1;
        size_t features = model_features(read);
        double *row = malloc(features * sizeof *row), out[16];
        if (!row) return 1;
        for (size_t n = 0; n < 5; n++) {
            for (size_t d = 0; d < features; d++) row[d] = 0.5 * (double)((7 * n + 3 * d) % 11) - 2.5;
            size_t found = model_predict(read, row, out, 16);
            printf("%s", names[k]);
            for (size_t i = 0; i < found; i++) printf(" %.17g", out[i]);
            printf("\n");
        }
        free(row);
        model_free(read);
    }
    return 0;
}
